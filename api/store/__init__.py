"""The database: what the service stores, and the records and repositories that read and write it.

* Every method of a repository is one transaction. It happened and is durable when the method returns, or it did not
  happen. Methods may be called from any thread; none holds a lock afterwards.
* The caller owns what a method returns: records are values and never change.
* A ``TenantStore`` is of one tenant. It finds, lists, counts, changes and refers to nothing of another tenant, and
  equal digests, names, versions and keys of requests of two tenants do not meet.
* What is of all tenants together is in ``Database`` alone, for the processes that run work and for the command line. It
  finds nothing by a digest or a name, so that its callers have to name a tenant.
"""
