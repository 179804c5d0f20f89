"""Why there is no plan, and the smallest changes of the spec that give one."""
