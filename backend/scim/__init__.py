"""A directory of users and groups that an identity provider writes over SCIM 2.0."""
