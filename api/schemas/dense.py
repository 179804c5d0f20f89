"""The dense part of a model in a spec: its seconds, its floating point operations or its layers."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from api.schemas.base import StrictModel, fields_disagree

MAX_SECONDS = 3600  # of dense compute in one step
MAX_STACKS = 100
MAX_LAYERS = 1_000
MAX_LAYER_WIDTH = 2**24

ComputeTypeName = Literal["bf16", "fp16", "tf32", "fp32"]
GradientTypeName = Literal["fp32", "fp16", "bf16"]
_Width = Annotated[int, Field(ge=1, le=MAX_LAYER_WIDTH)]
_Widths = Annotated[list[_Width], Field(min_length=2, max_length=MAX_LAYERS, fail_fast=True)]
_Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]
_Flops = Annotated[float, Field(ge=0, le=2.0**60)]


class CrossLayersSpec(StrictModel):
    """Cross layers of DCN V2."""

    num_layers: Annotated[int, Field(ge=1, le=MAX_LAYERS)] = Field(description="Cross layers.", examples=[3])
    width: _Width = Field(description="Inputs, and outputs, of each. Unit: columns.", examples=[3456])
    rank: _Width | None = Field(
        default=None, description="Rank of the product of two matrices; null: one full matrix.", examples=[512]
    )


class LayersSpec(StrictModel):
    """The layers of the dense part."""

    mlp_widths: Annotated[list[_Widths], Field(max_length=MAX_STACKS)] = Field(
        default_factory=list,
        description="Widths of every stack of fully connected layers, its input first. Unit: columns.",
        examples=[[[13, 512, 256, 128], [3456, 1024, 1024, 512, 256, 1]]],
    )
    cross_layers: CrossLayersSpec | None = Field(default=None, description="Cross layers.", examples=[None])

    @model_validator(mode="after")
    def _has_some(self) -> "LayersSpec":
        if not self.mlp_widths and self.cross_layers is None:
            raise fields_disagree("no layer: give mlp_widths or cross_layers", "mlp_widths", "cross_layers")
        return self


class DenseSpec(StrictModel):
    """The dense part of the model; its compute by at most one of seconds, operations and layers."""

    forward_seconds: _Seconds | None = Field(
        default=None, description="Dense forward compute of one step. Unit: seconds.", examples=[0.004]
    )
    backward_seconds: _Seconds | None = Field(
        default=None, description="Dense backward compute of one step. Unit: seconds.", examples=[0.008]
    )
    forward_flops_per_sample: _Flops | None = Field(
        default=None,
        description="Floating point operations of one sample forward, 2 per weight of a fully connected layer. Unit:"
        " operations.",
        examples=[None],
    )
    backward_flops_per_sample: _Flops | None = Field(
        default=None,
        description="The same backward; null: twice those forward. Unit: operations.",
        examples=[None],
    )
    layers: LayersSpec | None = Field(
        default=None, description="Layers, which say how many operations a sample takes.", examples=[None]
    )
    compute_dtype: ComputeTypeName | None = Field(
        default=None,
        description="Type of dense arithmetic; the hardware has a rate of each. Needed with operations and layers.",
        examples=[None],
    )
    parameter_bytes: Annotated[float, Field(ge=0, le=2.0**60)] | None = Field(
        default=None,
        description="Weights of the dense part; null: 4 bytes for each weight and bias of the layers, 0 without layers."
        " Unit: bytes.",
        examples=[60_000_000],
    )
    activation_bytes: Annotated[float, Field(ge=0, le=2.0**60)] | None = Field(
        default=None,
        description="Activations that the dense part keeps for its backward pass, of one rank; taken off every rank's"
        " memory. null: not known, left to the margin. Unit: bytes.",
        examples=[12_000_000_000],
    )
    gradient_dtype: GradientTypeName | None = Field(
        default=None,
        description="Type of dense gradients in their all-reduce, of weights in fp32; null: as many bytes as weights.",
        examples=[None],
    )
