# Open WebUI for one person: the page at the port, our models, and agents, in its list
set -eu
export OPENAI_API_BASE_URL=$OPENAI_BASE_URL ENABLE_OLLAMA_API=False
export WEBUI_AUTH=False WEBUI_SECRET_KEY=any-words-of-yours DATA_DIR=$PWD/open-webui
exec open-webui serve --host 127.0.0.1 --port "${PORT:-8080}"
