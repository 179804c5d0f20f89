"""Plans for several sizes of a cluster, so that a job that loses or gains hosts moves few bytes."""
