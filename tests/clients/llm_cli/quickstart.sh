# llm: a prompt, a turn that goes on, a form, a function, and the handbook through an agent
set -eu
folder=$(dirname "$(llm logs path)")
mkdir -p "$folder"
llm keys set ballast --value "$OPENAI_API_KEY"
cat > "$folder/extra-openai-models.yaml" << END
- {model_id: ballast, model_name: $MODEL, api_base: "$OPENAI_BASE_URL", api_key_name: ballast, supports_schema: true, supports_tools: true}
- {model_id: handbook, model_name: llm-handbook, api_base: "$OPENAI_BASE_URL", api_key_name: ballast}
END
llm -m ballast "Greet me."
llm -c "Thank you."
llm -m ballast --schema "name, age int" "Who was Ada Lovelace?"
llm -m ballast --functions 'def get_weather(city: str) -> str: return f"rain in {city}"' 'Use get_weather({"city": "Paris"}).'

# knowledge: an agent is a model with knowledge bases
curl -s -X PUT "$OPENAI_BASE_URL/agents/llm-handbook" -H "Authorization: Bearer $OPENAI_API_KEY" \
  -H "Content-Type: application/json" -d "{\"model\": \"$MODEL\", \"knowledge_base_ids\": [\"$KNOWLEDGE_BASE_ID\"]}" > agent.json
llm -m handbook "Which code word does the handbook name?"
