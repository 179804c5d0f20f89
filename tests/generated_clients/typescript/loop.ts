// The whole loop with the types that openapi-typescript generates: checked by tsc --strict, then run by a test.
//
// `node build/loop.js URL` prints what each step came to, as one JSON document.

import createClient from "openapi-fetch";
import type { components, paths } from "./shardplan.js";

type Spec = components["schemas"]["SpecDocument"];
type Solve = components["schemas"]["SolveDocument"];

const CHANNEL = "ads/typescript";
const url = process.argv[2];
if (url === undefined) throw new Error("give the address of a service");
const client = createClient<paths>({ baseUrl: url });

const spec = {
  name: "generated",
  model: {
    batch_size_per_rank: 64,
    tables: [
      { name: "user", num_embeddings: 100_000, embedding_dim: 64, pooling_factor: 1 },
      { name: "item", num_embeddings: 10_000, embedding_dim: 32, pooling_factor: 20 },
    ],
  },
  hardware: { profile: "dgx-h100-80g", num_hosts: 1, ranks_per_host: 2 },
  solver: { partitioner: "greedy", time_limit_seconds: 5 },
} satisfies Spec;

/** What an answer has, or the end of the program with the problem of the service. */
function the<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

async function followed(solve: Solve): Promise<Solve> {
  let current = solve;
  while (current.state === "queued" || current.state === "running") {
    const params = { path: { solve_id: current.id }, query: { wait: 10 } };
    current = the(await client.GET("/v1/solves/{solve_id}", { params }));
  }
  return current;
}

function digestOf(solve: Solve): string {
  const objective = solve.result?.objective;
  if (!objective || objective.seconds < objective.lower_bound_seconds) throw new Error("no plan, or one below its bound");
  const digest = solve.result?.plan_digest;
  if (!digest) throw new Error("no plan");
  return digest;
}

async function loop(): Promise<Record<string, unknown>> {
  const validation = the(await client.POST("/v1/specs:validate", { body: spec }));
  const first = await followed(the(await client.POST("/v1/solves", { body: spec })));
  const body = { solve: first.id, patch: { hardware: { ranks_per_host: 4 } } };
  const second = await followed(the(await client.POST("/v1/solves:from-patch", { body })));
  const [before, after] = [digestOf(first), digestOf(second)];
  const plan = the(await client.GET("/v1/plans/{digest}", { params: { path: { digest: before } } }));

  const path = { name: CHANNEL };
  const published = await client.PUT("/v1/channels/{name}", {
    params: { path, header: { "if-none-match": "*" } },
    body: { plan_digest: before },
  });
  const etag = published.response.headers.get("etag") ?? "";
  const change = { params: { path, header: { "if-match": etag } }, body: { plan_digest: after } };
  const promoted = the(await client.PUT("/v1/channels/{name}", change));
  const late = await client.PUT("/v1/channels/{name}", change);

  const fetched = await client.GET("/v1/channels/{name}/plan", { params: { path } });
  const seen = fetched.response.headers.get("etag") ?? "";
  const again = await client.GET("/v1/channels/{name}/plan", { params: { path, header: { "if-none-match": seen } } });
  const stored = await client.GET("/v1/plans/{digest}", {
    params: { path: { digest: after }, header: { "if-none-match": "*" } },
  });

  const current = await client.GET("/v1/channels/{name}", { params: { path } });
  const back = the(
    await client.POST("/v1/channels/{name}:rollback", {
      params: { path, header: { "if-match": current.response.headers.get("etag") ?? "" } },
      body: {},
    }),
  );

  const tables = spec.model.tables.map((table) => ({ ...table, num_embeddings: table.name === "item" ? 0 : 1 }));
  const wrong = await client.POST("/v1/specs:validate", { body: { ...spec, model: { ...spec.model, tables } } });
  const missing = await client.GET("/v1/plans/{digest}", { params: { path: { digest: "sha256:" + "0".repeat(64) } } });
  return {
    num_tables: validation.totals.num_tables,
    tables: plan.tables.map((table) => table.name),
    published: published.response.status,
    promoted: promoted.plan_digest === after,
    late: late.error?.code,
    world_size: the(fetched).world_size,
    again: again.response.status,
    stored: stored.response.status,
    back: back.plan_digest === before,
    problem: [wrong.error?.status, wrong.error?.code, wrong.error?.errors?.map((issue) => issue.pointer)],
    missing: missing.error?.code,
  };
}

console.log(JSON.stringify(await loop()));
