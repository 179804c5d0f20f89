"""The FastAPI shell: routes, middleware, authentication, the OpenAPI document and the pages."""
