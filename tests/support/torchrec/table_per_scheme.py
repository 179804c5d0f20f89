"""A model for TorchRec's own planner, with one table for each scheme."""

from collections.abc import Sequence

import torch
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection


class TablePerScheme(torch.nn.Module):
    """Tables of 512 columns in one collection on the meta device, each named after its scheme."""

    def __init__(self, schemes: Sequence[str], rows: int) -> None:
        super().__init__()
        self.ebc = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=512, feature_names=[name])
                for name in schemes
            ],
        )
