"""Plans: immutable documents by digest, their exports, and judgement of plans from anywhere."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from api.http.protocol.responses import IMMUTABLE, json_response, plan_response, streamed_response
from api.http.routes.documentation import (
    BODY_ERRORS,
    HAS_IT,
    IfNoneMatch,
    error_responses,
    json_answer,
    json_body,
    reference,
)
from api.http.services import Services, ServicesDep
from api.schemas.base import DIGEST_PATTERN, ModulePath
from api.schemas.certificate import CertificateDocument
from api.schemas.evaluation import EvaluationDocument
from api.schemas.explanation import ExplanationDocument
from api.schemas.number_text import WHOLE_NUMBER
from api.schemas.plan import AnyEvaluationRequest
from api.services.errors import ApiError, found
from api.services.plans.cache import ServedPlan
from api.services.plans.forms import COMPACT, LONG, Form, StreamedPlan, gathered, has_ready_long_form
from api.services.plans.reports import certificate_of, evaluation_of, explain_given, explanation_document
from api.specs.parse import parse_evaluation, parse_plan, parse_stored_spec
from api.specs.plans.document import GivenPlan
from api.specs.references.cost_model import COST_MODEL_PATTERN
from api.specs.request import SolveInputs, SolveRequest
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import Issue, UnsupportedRequest
from planner.options.runtimes.export import ExportFacts, UnexportablePlan
from planner.output.explain.explanation import DEFAULT_TABLES
from planner.output.exporters.registry import FORMATS, JSON, export_parts, reads_facts

#: Bodies with a plan from anywhere.
_GIVEN_PLANS = tuple(model.__name__ for model in get_args(AnyEvaluationRequest))
router = APIRouter(prefix="/v1", tags=["plans"])

#: Each takes 20 to 40 ms on 128 ranks; the command line explains any number.
MAX_EXPLAINED_TABLES = 100

#: Each takes some milliseconds of a processor to state and to bound; the command line certifies any number.
MAX_CERTIFIED_TABLES = 300

#: A name that no cost model can have is refused like any other parameter.
CostModelName = Annotated[str, Query(pattern=COST_MODEL_PATTERN)]
PlanDigest = Annotated[str, Path(pattern=DIGEST_PATTERN, description="Digest of the plan.")]
RankOfPlan = Annotated[
    int | None,
    Query(ge=-(2**31), lt=2**31, description="Only the head of the plan and the shards of this rank, counted from 0."),
    WHOLE_NUMBER,
]
FormOfPlan = Annotated[
    Form | None,
    Query(
        description="long lists every shard and is the default; compact has equal shards in groups. The slice of a rank"
        " has no compact form."
    ),
]
PLAN_OR_SLICE = {
    "description": "The plan in the form asked for, or the slice of a rank; X-Plan-Digest repeats its digest.",
    "content": {
        "application/json": {"schema": reference("CompactPlanDocument", "PlanSlice", "PlanDocument", choice="oneOf")}
    },
}


@router.get(
    "/plans/{digest}",
    summary="Fetch a plan",
    responses={
        200: PLAN_OR_SLICE,
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter", "no-such-rank"),
    },
)
async def get_plan(
    request: Request,
    services: ServicesDep,
    digest: PlanDigest,
    rank: RankOfPlan = None,
    form: FormOfPlan = None,
    if_none_match: IfNoneMatch = "",
) -> Response:
    """Answer with the bytes of the plan, which never change."""
    return await answer_plan(
        request, services, digest, rank, form, if_none_match=if_none_match, cache_control=IMMUTABLE
    )


@router.get(
    "/plans/{digest}/exports/{format}",
    summary="Export a plan for a runtime",
    responses={
        200: {"description": "The plan in the format.", "content": {"application/json": {}}},
        **error_responses("not-found", "invalid-parameter", "export-refused"),
    },
)
async def export_plan(
    request: Request,
    services: ServicesDep,
    digest: PlanDigest,
    format: Annotated[str, Path(description=f"One of {', '.join(FORMATS)}.")],
    module_path: Annotated[
        ModulePath | None, Query(description="Path of the embedding module, where the plan does not say.")
    ] = None,
    device: Annotated[
        Literal["cuda", "cpu"] | None,
        Query(description="cuda or cpu; by default that of the plan's hardware profile."),
    ] = None,
    sparsecores_per_chip: Annotated[
        int | None,
        Query(ge=1, le=64, description="For sparsecore, where the hardware profile does not say."),
        WHOLE_NUMBER,
    ] = None,
) -> Response:
    """Answer with what the runtime reads."""
    if format not in FORMATS:
        raise ApiError("not-found", f"no such format; known: {', '.join(FORMATS)}")
    served = await run_sync(find_plan, services, digest)
    headers = {"X-Plan-Digest": digest}
    if format == JSON and request.method == "HEAD":  # a GET is streamed, so that no length is known here either
        return StreamingResponse(iter(()), media_type="application/json", headers=headers)

    def export() -> Iterator[bytes]:
        try:
            document = json.loads(served.canonical)
            inputs = inputs_of(services, document) if reads_facts(format) else None
            facts = ExportFacts(
                problem=None if inputs is None else inputs.problem,
                sparsecores_per_chip=sparsecores_per_chip,
                cost_model=None if inputs is None else inputs.cost_model,
            )
            return export_parts(document, format, module_path=module_path, device=device, facts=facts)
        except UnexportablePlan as error:
            raise ApiError("export-refused", str(error)) from error

    parts = await services.compute(export)
    if format == JSON:  # of millions of shards, and written while it is sent
        return StreamingResponse(gathered(parts), media_type="application/json", headers=headers)
    return Response(b"".join(parts), media_type="application/json", headers=headers)


@router.get(
    "/plans/{digest}/explanation",
    summary="Explain a plan",
    responses={
        200: json_answer(
            "What the plan waits for, what hardware would buy, what else its tables could be.", ExplanationDocument
        ),
        **error_responses("not-found", "invalid-parameter", "invalid-problem", "unsupported"),
    },
)
async def explain_plan(
    services: ServicesDep,
    digest: PlanDigest,
    tables: Annotated[
        int,
        Query(ge=0, le=MAX_EXPLAINED_TABLES, description="How many tables are explained, the heaviest first."),
        WHOLE_NUMBER,
    ] = DEFAULT_TABLES,
) -> Response:
    """Explain a plan by the spec that it was made for; no search is run."""
    explanation = await services.compute(lambda: _explanation(services, digest, tables))
    return json_response(explanation, headers={"X-Plan-Digest": digest})


@router.post(
    "/plans:evaluate",
    summary="Judge a plan from anywhere",
    openapi_extra=json_body(*_GIVEN_PLANS),
    responses={
        200: json_answer("What is wrong with it, and what it costs.", EvaluationDocument),
        **error_responses("invalid-parameter", *BODY_ERRORS),
    },
)
async def evaluate_plan(
    request: Request,
    services: ServicesDep,
    cost_model: Annotated[
        CostModelName | None, Query(description="Judges in place of the spec's own cost model.")
    ] = None,
) -> Response:
    """Verify and score a plan under the spec's cost model, or another one."""
    raw = await request.body()
    evaluation = await services.compute(lambda: evaluation_of(*_given(services, raw, cost_model)))
    return json_response(evaluation)


@router.post(
    "/plans:certify",
    summary="Prove how good a plan from anywhere is",
    openapi_extra=json_body(*_GIVEN_PLANS),
    responses={
        200: json_answer(
            "The plan, the options with their prices, and a proof that check_certificate.py checks.",
            CertificateDocument,
        ),
        **error_responses("invalid-parameter", *BODY_ERRORS, "unsupported"),
    },
)
async def certify_plan(
    request: Request,
    services: ServicesDep,
    cost_model: Annotated[
        CostModelName | None, Query(description="Prices options in place of the spec's own cost model.")
    ] = None,
) -> Response:
    """Answer with a certificate of a plan under the spec's cost model, or another one."""
    raw = await request.body()

    def certificate() -> bytes:
        given = _given(services, raw, cost_model)
        num_tables = len(given[0].problem.tables)
        if num_tables > MAX_CERTIFIED_TABLES:
            raise UnsupportedRequest(
                Issue(
                    code="too-many-tables",
                    pointer="/spec/model/tables",
                    message=f"{num_tables} tables; plans of at most {MAX_CERTIFIED_TABLES} are certified over HTTP",
                    hint="certify the plan on the command line: shardplan certify SPEC.json PLAN.json",
                )
            )
        return canonical_bytes(certificate_of(*given, spec_base="/spec", plan_base="/plan"))

    return Response(await services.compute(certificate), media_type="application/json")


def _given(services: Services, raw: bytes, cost_model: str | None) -> tuple[SolveRequest, GivenPlan]:
    """Return a plan from anywhere and the request that it answers, with what the service has stored for them."""
    return parse_evaluation(raw, services.library, cost_model=cost_model)


async def answer_plan(
    request: Request,
    services: Services,
    digest: str,
    rank: int | None,
    form: Form | None,
    *,
    if_none_match: str,
    cache_control: str,
) -> Response:
    """Answer with a plan, or with the slice of one rank, from memory if it is there."""
    if rank is not None and form == COMPACT:
        raise ApiError("invalid-parameter", "the slice of a rank has no compact form: ask for rank or for form=compact")
    form = form or LONG
    served: ServedPlan | StreamedPlan | None = services.plans.peek(digest, rank, form=form)
    if served is None:
        served = await run_sync(_plan_in_form, services, digest, rank, form)
    if isinstance(served, StreamedPlan):
        return streamed_response(
            request,
            served.parts(),
            name=served.name,
            if_none_match=if_none_match,
            plan_digest=digest,
            cache_control=cache_control,
        )
    return plan_response(request, served, if_none_match=if_none_match, plan_digest=digest, cache_control=cache_control)


def _plan_in_form(services: Services, digest: str, rank: int | None, form: Form) -> ServedPlan | StreamedPlan:
    """Return what is answered; of a long form that is too large for memory, what it is written from."""
    if rank is None and form == LONG:
        compact = find_plan(services, digest)
        if not has_ready_long_form(compact.num_shards):
            name = compact.by_encoding["identity"].etag.strip('"')
            return StreamedPlan(compact.canonical, f"{name}-{LONG}")
        return found(services.plans.get(digest, form=LONG), "plan")
    return find_plan(services, digest, rank)


def find_plan(services: Services, digest: str, rank: int | None = None) -> ServedPlan:
    """Return a plan in compact form, or the slice of one rank, from memory or disk."""
    served = services.plans.get(digest, rank)
    if served is None and rank is not None:
        last = json.loads(find_plan(services, digest).canonical)["world_size"] - 1
        raise ApiError("no-such-rank", f"the ranks of this plan are 0 to {last}")
    return found(served, "plan")


def inputs_of(services: Services, document: Mapping[str, object]) -> SolveInputs | None:
    """Return what a plan was made for, where its spec is stored."""
    spec = services.store.spec_of_problem(str(document.get("spec_digest")))
    return None if spec is None else parse_stored_spec(spec, services.library)


def _explanation(services: Services, digest: str, max_tables: int) -> ExplanationDocument:
    served = find_plan(services, digest)
    plan = parse_plan(served.canonical)
    spec_digest = plan.stated_spec_digest or ""
    spec = found(services.store.spec_of_problem(spec_digest), "spec of this plan")
    inputs = parse_stored_spec(spec, services.library)
    return explanation_document(
        spec_digest, plan, explain_given(inputs, plan, spec_digest=spec_digest, max_tables=max_tables)
    )
