# Codex CLI: a provider in its configuration, a turn, a turn that goes on, and the handbook through an agent
set -eu
mkdir -p ~/.codex
cat > ~/.codex/config.toml << END
model = "$MODEL"
model_provider = "ballast"

[model_providers.ballast]
name = "Ballast"
base_url = "$OPENAI_BASE_URL"
env_key = "OPENAI_API_KEY"
END
codex exec --skip-git-repo-check "What is in this folder?"
codex exec --skip-git-repo-check resume --last "Thank you."

# knowledge: an agent is a model with knowledge bases, and Codex names it as its model
curl -s -X PUT "$OPENAI_BASE_URL/agents/codex-handbook" -H "Authorization: Bearer $OPENAI_API_KEY" \
  -H "Content-Type: application/json" -d "{\"model\": \"$MODEL\", \"knowledge_base_ids\": [\"$KNOWLEDGE_BASE_ID\"]}" > agent.json
codex exec --skip-git-repo-check -m codex-handbook "Which code word does the handbook name?"
