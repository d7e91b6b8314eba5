const KINDS_EN: Record<string, string> = {
  tools: "Tools", system: "System message", user: "Question", assistant: "Answer or call of the model", tool_result: "Result of a tool",
  dynamic_context: "Context about knowledge bases", custom_instructions: "Instructions of an agent", project_files: "Files of an agent",
  file: "Uploaded file", summary: "Summary", summary_instruction: "Request for a summary", notice: "Notice", reminder: "Reminder",
};
const KINDS_ZH: Record<string, string> = {
  tools: "工具", system: "系统消息", user: "提问", assistant: "模型的回答或调用", tool_result: "工具结果",
  dynamic_context: "知识库的动态上下文", custom_instructions: "助手指令", project_files: "助手文件",
  file: "上传的文件", summary: "摘要", summary_instruction: "摘要请求", notice: "通知", reminder: "提醒",
};
const REASONS_EN: Record<string, string> = {
  new_conversation: "the conversation began", model_changed: "another model", tools_changed: "other tools", instructions_changed: "other instructions",
  template_version: "a new release's fixed words", access_changed: "changed access", compaction: "an earlier part was left out", history_edited: "the last item was deleted",
};
const REASONS_ZH: Record<string, string> = {
  new_conversation: "对话开始", model_changed: "更换了模型", tools_changed: "工具有变", instructions_changed: "指令有变",
  template_version: "新版本的固定文字", access_changed: "权限有变", compaction: "较早的部分被略去", history_edited: "最后一条被删除",
};

const MISSES_EN: Record<string, string> = {
  ours: "what reached it had changed", below_minimum: "too short to be kept", evicted: "probably evicted", routed_elsewhere: "the call was probably routed elsewhere",
};
const MISSES_ZH: Record<string, string> = {
  ours: "到达服务商的内容已有变化", below_minimum: "开头太短，服务商不缓存", evicted: "缓存可能已被清除", routed_elsewhere: "请求可能被送到了别处",
};
const LAYOUTS_EN: Record<string, string> = {
  as_sent: "As it was sent", context_in_system: "Context in the system message", context_before_question: "Context before each question", results_forgotten: "Results of tools forgotten after their turn",
};
const LAYOUTS_ZH: Record<string, string> = {
  as_sent: "实际发送的布局", context_in_system: "上下文放在系统消息中", context_before_question: "上下文放在每个提问之前", results_forgotten: "工具结果只在当轮保留",
};

export const XRAY_WORDS = {
  en: {
    title: "Prompt x-ray",
    promise: "The beginning of a prompt never moves.",
    lead: "You see what the model was sent: each bar is one call of it, and what is pale had been sent before, byte for byte at the same place. A provider reads that part from its cache, at about a tenth of the price and sooner, mostly from 1,024 tokens on; one byte that moves would cost the full price from there on.",
    conversation: "Conversation",
    none: "No conversation yet",
    noneText: "Ask twice in the same chat; then this view shows what the model was sent for them, and how little of it was new.",
    goChat: "Go to Chat",
    noCalls: "No model call of this conversation is kept.",
    parts: { tools: "Tools", system: "System", history: "History", context: "Dynamic context", behind: "Reminder behind the log: not sent again, by design" },
    reused: "Sent before",
    cached: "Read from the provider's cache",
    kind: (kind: string) => KINDS_EN[kind] ?? kind,
    call: (turn: number, call: number) => `Turn ${turn}, call ${call}`,
    epoch: (epoch: number, reason: string) => `Epoch ${epoch}, a new beginning of the prompt: ${REASONS_EN[reason] ?? reason}`,
    states: { old: "sent before", behind: "for this call alone", fresh: "new" },
    segment: (kind: string, bytes: string, state: string) => `${kind}, ${bytes} bytes, ${state}`,
    behind: "stands behind the log and is not sent again by design, so that it moves nothing",
    hover: "Point at a part of a bar, or go to it with the arrow keys, to see its bytes; open it to read it.",
    tokens: (tokens: string) => `${tokens} tokens, estimated`,
    position: (position: string) => `place ${position} in the log`,
    notInLog: "not kept in the log",
    figures: "Figures of each model call",
    moved: (tokens: number) => `The placement of the agent's words, or the context policy, moved ${tokens} tokens that had been sent before.`,
    missed: (cause: string, diagnosis: string | null) =>
      `Not all that had been sent before came from the provider's cache: ${MISSES_EN[cause] ?? cause}${diagnosis ? `; it says: ${diagnosis}` : ""}.`,
    layouts: "The same words in other layouts: estimated tokens, and their cost in tokens at the full price",
    layout: "Layout",
    layoutNames: LAYOUTS_EN,
    heads: { call: "Call", bytes: "Bytes sent", reused: "Sent before", tokens: "Tokens", cached: "Cached", cost: "Cost", saved: "Saved" },
    shareReused: "of all bytes had been sent before; the others are what each call adds.",
    shareKept: (share: string) => `${share} of the earlier prompt came again unchanged.`,
    askAgain: "Ask a second question in this chat to see that the first prompt comes again unchanged.",
    shareCached: "of all tokens came from the provider's cache",
    notTold: "The provider does not tell what it cached.",
    cost: "is what it cost.",
    prices: "Prices are those of the models file; the demo's are examples.",
    costWithout: (amount: string) => `It would be ${amount} without a prefix that stays.`,
    noPrices: "No prices are set for this model (prices in the models file).",
    refresh: "Read again",
  },
  zh: {
    title: "提示词透视",
    promise: "提示词的开头从不移动。",
    lead: "这里显示发给模型的内容：每一条是一次模型调用，浅色部分此前已在同一位置逐字节发送过。服务商从缓存读取这一部分，价格约为十分之一，而且更快，多从 1,024 个 token 起；只要有一个字节移动，其后的内容就要按全价计费。",
    conversation: "对话",
    none: "还没有对话",
    noneText: "在同一个对话中问两次，这里就会显示模型收到了什么，其中新的内容有多么少。",
    goChat: "前往对话",
    noCalls: "没有保留此对话的模型调用。",
    parts: { tools: "工具", system: "系统", history: "历史", context: "动态上下文", behind: "日志之后的提醒：按设计不再发送" },
    reused: "此前已发送",
    cached: "从服务商缓存读取",
    kind: (kind: string) => KINDS_ZH[kind] ?? kind,
    call: (turn: number, call: number) => `第 ${turn} 轮，第 ${call} 次调用`,
    epoch: (epoch: number, reason: string) => `第 ${epoch} 纪元，提示词从头开始：${REASONS_ZH[reason] ?? reason}`,
    states: { old: "此前已发送", behind: "仅用于此次调用", fresh: "新内容" },
    segment: (kind: string, bytes: string, state: string) => `${kind}，${bytes} 字节，${state}`,
    behind: "位于日志之后，按设计不再发送，因此不会移动任何内容",
    hover: "指向条上的某一段，或用方向键移到它，可查看其字节数，打开可阅读内容。",
    tokens: (tokens: string) => `约 ${tokens} 个 token`,
    position: (position: string) => `日志位置 ${position}`,
    notInLog: "不在日志中",
    figures: "每次模型调用的数字",
    moved: (tokens: number) => `助手文字的位置设置或上下文策略移动了此前已发送的 ${tokens} 个 token。`,
    missed: (cause: string, diagnosis: string | null) => `此前发送过的内容没有全部来自服务商缓存：${MISSES_ZH[cause] ?? cause}${diagnosis ? `；它说：${diagnosis}` : ""}。`,
    layouts: "同样的文字在其他布局下：估计的 token 数，以及按全价 token 计的费用",
    layout: "布局",
    layoutNames: LAYOUTS_ZH,
    heads: { call: "调用", bytes: "发送字节", reused: "此前已发送", tokens: "token", cached: "缓存", cost: "费用", saved: "节省" },
    shareReused: "的字节此前已发送过，其余是每次调用新增的内容。",
    shareKept: (share: string) => `较早的提示词有 ${share} 原样再次发送。`,
    askAgain: "在此对话中再问一个问题，就能看到第一次的提示词原样再次发送。",
    shareCached: "的 token 来自服务商缓存",
    notTold: "服务商没有报告缓存量。",
    cost: "是实际费用。",
    prices: "价格取自模型文件；演示模型的价格只是示例。",
    costWithout: (amount: string) => `若前缀不稳定，则需 ${amount}。`,
    noPrices: "此模型没有设置价格（模型文件中的 prices）。",
    refresh: "重新读取",
  },
};
