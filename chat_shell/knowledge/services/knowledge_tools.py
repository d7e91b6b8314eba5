"""The knowledge tools, which read through the backend with the turn's ticket."""

from chat_shell.knowledge.ports import Knowledge
from chat_shell.knowledge.services.list_documents_tool import KnowledgeBaseListDocuments
from chat_shell.knowledge.services.read_document_tool import KnowledgeBaseReadDocument
from chat_shell.knowledge.services.read_file_tool import ReadFile
from chat_shell.knowledge.services.search_tool import KnowledgeBaseSearch, SafeSummaries
from chat_shell.tools.ports.tools import Tool


def build_knowledge_tools(knowledge: Knowledge, summaries: SafeSummaries) -> tuple[Tool, ...]:
    """Create the knowledge tools, sorted by name; restricted bases are searched through `summaries`."""
    return (
        KnowledgeBaseListDocuments(knowledge),
        KnowledgeBaseReadDocument(knowledge),
        KnowledgeBaseSearch(knowledge, summaries),
        ReadFile(knowledge),
    )
