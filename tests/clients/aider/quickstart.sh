# aider: a question about a file, an edit, and the handbook through an agent
set -eu
export OPENAI_API_BASE=$OPENAI_BASE_URL
printf 'def greet():\n    return "hello"\n' > greet.py
aider --no-git --yes-always --no-show-model-warnings --model "openai/$MODEL" --chat-mode ask -m "What does greet do?" greet.py
aider --no-git --yes-always --no-show-model-warnings --model "openai/$MODEL" -m "Greet with 'good day'." greet.py

# knowledge: an agent is a model with knowledge bases
curl -s -X PUT "$OPENAI_BASE_URL/agents/aider-handbook" -H "Authorization: Bearer $OPENAI_API_KEY" \
  -H "Content-Type: application/json" -d "{\"model\": \"$MODEL\", \"knowledge_base_ids\": [\"$KNOWLEDGE_BASE_ID\"]}" > agent.json
aider --no-git --yes-always --no-show-model-warnings --model openai/aider-handbook --chat-mode ask -m "Which code word does the handbook name?"
