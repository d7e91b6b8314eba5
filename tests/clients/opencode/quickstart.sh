# opencode: a provider in its configuration, a turn, a turn that goes on, and the handbook through an agent
set -eu
cat > opencode.json << END
{
  "provider": {
    "ballast": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Ballast",
      "options": {"baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "{env:OPENAI_API_KEY}"},
      "models": {"$MODEL": {}, "opencode-handbook": {}}
    }
  }
}
END
opencode run -m "ballast/$MODEL" "What is in this folder?"
opencode run -m "ballast/$MODEL" --continue "Thank you."

# knowledge: an agent is a model with knowledge bases, and opencode names it as its model
curl -s -X PUT "$OPENAI_BASE_URL/agents/opencode-handbook" -H "Authorization: Bearer $OPENAI_API_KEY" \
  -H "Content-Type: application/json" -d "{\"model\": \"$MODEL\", \"knowledge_base_ids\": [\"$KNOWLEDGE_BASE_ID\"]}" > agent.json
opencode run -m ballast/opencode-handbook "Which code word does the handbook name?"
