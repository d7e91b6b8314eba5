"""Detect text that is addressed to a model and not to a reader: instructions, roles, chat markup."""

import re

from shared.plain_text.normal_form import normal_form

_MODEL = r"(?:ai|a\.i\.|assistant|chatbot|bot|llm|gpt|dan|(?:large )?(?:language |ai )model)"
_SET_ASIDE = r"\b(?:ignore|disregard|forget|override|bypass|overrule|skip)"
_RULES = r"(?:rules|guidelines|directives?|guardrails|restrictions?|constraints?|orders?)"
_FEW_WORDS = r"(?:[a-z]+ ){0,3}"
_SOMETHING = r"(?:an? |the |any |all |my )?"
_SET_ASIDE_ZH = "(?:忽略|无视|忘记|忘掉|不要理会|不要遵守|不必遵守|绕过|跳过|覆盖)"
_EARLIER_ZH = "(?:你的|您的|以上|之前|此前|上述|前面|先前|上面)"

_PATTERNS = (
    # instructions to ignore earlier text
    rf"{_SET_ASIDE} (?:[a-z]+ ){{0,4}}(?:instructions?|prompts?|system message)\b",
    rf"{_SET_ASIDE} {_FEW_WORDS}(?:your|previous|prior|above|earlier|preceding|these) {_FEW_WORDS}{_RULES}\b",
    rf"{_SET_ASIDE} (?:all|everything|anything|whatever) {_FEW_WORDS}(?:above|before|previous|earlier)\b",
    r"\b(?:new|updated|revised|additional|hidden) (?:system )?(?:instructions?|directives?) ?:",
    rf"{_SET_ASIDE_ZH}.{{0,12}}(?:指令|指示|提示词)",
    rf"{_SET_ASIDE_ZH}{_EARLIER_ZH}.{{0,8}}(?:规则|限制|约束|要求|命令|内容|设定)",
    "(?:新|更新|隐藏|附加)的?(?:系统)?(?:指令|指示) ?:",
    # addressing the reader as a model
    rf"\byou(?: are| ?['’]re) (?:[a-z]+ ){{0,4}}{_MODEL}\b",
    rf"\b(?:as|being|act as|pretend to be|roleplay as|behave like) {_SOMETHING}(?:[a-z]+ )?{_MODEL}\b",
    (
        rf"\b(?:dear|hey|hello|attention|note to|message (?:to|for)|instructions? (?:to|for)) {_SOMETHING}"
        rf"(?:{_MODEL}|model|agent)s?\b"
    ),
    rf"\b{_MODEL}s? (?:must|should|shall|has to|is to|will now|reading this)\b",
    "(?:你|您)(?:现在)?(?:是|将扮演|要扮演|扮演|作为).{0,12}(?:ai|助手|助理|模型|机器人)",
    "(?:作为|身为)(?:一个|一名|一款|一位)?(?:ai|人工智能|大?语言模型|大模型|助手|智能助手|模型)",
    "(?:ai|助手|模型|智能体)(?:必须|应当|请|务必|需要)(?:回答|输出|回复|返回|忽略|执行|遵守|告诉)",
    # markup and role names of a chat
    r"<\|[a-z_0-9]{2,40}\|?>|\[/?inst\]|<<sys>>|</?(?:system|assistant|user|tool|instructions?)>",
    r"(?:^|[.;] ?|### ?)(?:system|assistant|developer|human)(?: message| prompt)? ?:",
    r"\b(?:system|developer) (?:prompt|message|instructions?)\b",
    r"\b(?:tool|function)[ _]calls?\b|\bknowledge_base_search\b",
    r"\b(?:jailbreak|prompt injection|developer mode|dan mode)\b",
    "(?:系统|开发者)(?:提示词?|消息|指令)|提示词注入|越狱模式|开发者模式",
    "(?:^|[。;] ?)(?:系统|助手|用户|开发者) ?:",
    # instructions on what to say, to hide or to call
    (
        r"\b(?:do not|don ?['’]t|never) (?:tell|inform|warn|mention (?:this|it) to|reveal (?:this|it) to) "
        rf"{_SOMETHING}(?:users?|humans?|reader)\b"
    ),
    r"\b(?:reply|respond|answer) (?:only|exactly|always|solely) (?:with|in|using)\b",
    (
        rf"\b(?:repeat|print|output|reproduce|copy|quote|recite|echo) {_FEW_WORDS}{_FEW_WORDS}"
        r"(?:verbatim|word for word|exactly as|in full|unchanged)\b"
    ),
    (
        r"\b(?:tell|inform|give|show|name|list|mention|add|copy|copied|quote|include|note (?:for|to))\b[^.]{0,60}"
        r"\b(?:reader|user|chunks?|context|sources|passages?)\b"
    ),
    r"\b(?:your|the) (?:final|next|own) (?:answer|reply|response|output|text|message)\b",
    "(?:告诉|告知|转告|提示)(?:读者|用户|提问者|对方)|(?:最终|你的|您的|下一[次条])(?:回答|回复|答复|输出)",
    r"\b(?:call|invoke) (?:[a-z_]+ ){0,4}(?:tool|function)\b",
    r"\b(?:ask|search|query)(?: [a-z]+){0,2} (?:again|once more)\b|\bin the (?:next )?query\b",
    r"\b(?:ask|search|query) (?:the |this |that )?knowledge base\b",
    # what a model or its reader is to do with the next answer, and how an answer is to be read
    r"\b(?:ask|search|query) next (?:for|about|whether|what|who|which|how)\b",
    (
        r"\bread (?:the |this |that |each |every )?(?:[a-z]+ )?"
        r"(?:answer|reply|response|text|line|sentence|word)s? backwards?\b"
    ),
    rf"{_SET_ASIDE} (?:what|everything|all) (?:came|went|was said|stands) (?:before|above|earlier)\b",
    "下一?[次回轮]的?(?:查询|检索|搜索|提问)",
    "(?:倒着|倒过来|反着|反过来|从后往前|逆序)(?:读|念)",
    "(?:再次|重新|继续)(?:查询|检索|搜索|提问)(?:知识库|资料)|(?:查询|检索|搜索)(?:知识库|资料库)",
    "(?:不要|不得|切勿|别)(?:告诉|告知|提醒|通知|透露给)(?:用户|读者|使用者|对方)",
    "(?:逐字|原样|一字不差|原封不动|完整)地?(?:输出|复述|重复|打印|返回|抄写|列出)",
    "调用.{0,8}(?:工具|函数)|(?:工具|函数)调用",
)
_ORDER = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS))


def is_order_to_model(text: str) -> bool:
    """Tell whether a text, English or Chinese, contains instructions to a model, roles or chat markup.

    Instructions to a person about the work ("review the access rules") do not count.
    """
    return any(_ORDER.search(normal_form(part)) for part in (text, *text.splitlines()[1:]))
