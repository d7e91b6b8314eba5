"""The values of the contract between the two services, and their forms as JSON and as OpenAI's items."""
