"""The database: what the service stores, and the records and repositories that read and write it.

``database.py`` opens it. Each aggregate has a folder with its records and its repositories. All repositories guarantee:

* Every method is one transaction. When it returns, all of it happened and is durable; when it raises, nothing happened.
  Methods may be called from any thread; none holds a lock afterwards.
* The caller owns what a method returns: records are values and never change.
* A ``TenantStore`` has the rows of one tenant. It finds, lists, counts, changes and refers to nothing of another
  tenant, and equal digests, names, versions and keys of requests of two tenants do not meet.
* ``Database`` has what all tenants share, for the processes that run work and for the command line. It finds nothing by
  a digest or a name: for that its callers have to name a tenant.
"""
