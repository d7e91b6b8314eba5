"""Texts about nothing in particular, in two languages, from which the middle of each language is worked out.

Each pair of an English and a Chinese text says the same, and the texts are about as different as texts of bases are.
They are the project's own, and were written before anything was measured with them. Another word in them makes other
vectors: `REFERENCE_DIGEST` is part of the name of what made a vector.
"""

from hashlib import sha256
from typing import Final

from backend.embeddings.domain import TextKind, WritingSystem

_ENGLISH_QUESTIONS = (
    "When does the library close on Sundays?",
    "How do I apply for parental leave?",
    "Which river runs through the old town?",
    "What should I do when the server does not answer?",
    "Who wrote the first novel of the series?",
    "How long must the dough rest?",
    "Why did the company close its factory?",
    "What are the rules for expenses on a trip?",
    "How many players are in a team?",
    "Which vaccine does a child need before school?",
    "How is the password changed?",
    "What caused the war?",
    "Where can I park near the office?",
    "What does the insurance cover?",
    "How fast does light travel?",
    "Who approves a purchase above the limit?",
    "How did the singer become famous?",
    "When will the next version be released?",
    "What animals live in the forest?",
    "How do we measure the quality of support?",
    "Why is my invoice higher this month?",
    "Which school did the painter attend?",
    "How should waste be separated?",
    "What happens when a contract ends?",
    "How does the engine start in cold weather?",
    "Who leads the committee?",
    "What is served at the festival?",
    "How are new employees introduced?",
    "When was the railway built?",
    "How can I make the game run faster?",
)

_CHINESE_QUESTIONS = (
    "图书馆星期天几点关门？",
    "怎样申请育儿假？",
    "哪条河流经老城？",
    "服务器没有响应时该怎么办？",
    "这个系列的第一部小说是谁写的？",
    "面团要静置多久？",
    "公司为什么关闭了工厂？",
    "出差费用有哪些规定？",
    "一支球队有多少名球员？",
    "孩子上学前要打什么疫苗？",
    "密码怎么修改？",
    "战争的起因是什么？",
    "办公室附近哪里可以停车？",
    "保险包括哪些内容？",
    "光的速度有多快？",
    "超过限额的采购由谁批准？",
    "这位歌手是怎样成名的？",
    "下一个版本什么时候发布？",
    "森林里生活着什么动物？",
    "我们怎样衡量支持的质量？",
    "为什么这个月的账单更高？",
    "这位画家上过哪所学校？",
    "垃圾应该怎样分类？",
    "合同结束后会怎样？",
    "天冷时怎样启动发动机？",
    "委员会由谁领导？",
    "节日里吃什么？",
    "新员工是怎样入职的？",
    "这条铁路是什么时候修建的？",
    "怎样让游戏运行得更快？",
)

_ENGLISH_PASSAGES = (
    (
        "The library is open from nine to six on weekdays and closes at one on Sundays; books can be "
        "returned at any time."
    ),
    "Parents may take up to sixteen weeks of leave. They tell their manager two months before and fill in the form.",
    (
        "The old town lies on both banks of the river. Three stone bridges, built in the fourteenth "
        "century, join the halves."
    ),
    (
        "If a server stops answering, look at its health page first, then restart the service and tell "
        "the person on call."
    ),
    "The series began in 1954 with a novel about two brothers; its author wrote five more volumes before her death.",
    "Mix flour, water and salt, knead the dough for ten minutes and let it rest in a warm place for two hours.",
    "Rising costs and fewer orders led the company to close its factory in the north and to move production abroad.",
    "Travel costs are paid back within thirty days. Keep the receipts; meals are limited to forty dollars a day.",
    (
        "Each team has eleven players on the field and up to seven substitutes. A match lasts two halves "
        "of forty-five minutes."
    ),
    "Before they enter school, children should be vaccinated against measles and tetanus; the doctor keeps a record.",
    (
        "Open the settings of your account, choose security, enter the old password once and the new one "
        "twice, and save."
    ),
    (
        "Historians name trade, religion and a dispute about the throne as causes of the war, which "
        "lasted for eight years."
    ),
    "Employees park in the garage behind the office. Visitors get a ticket at the front desk and pay nothing.",
    "The policy covers damage by fire, water and storm. It does not cover damage that the owner causes on purpose.",
    "Light travels about three hundred thousand kilometres in a second; sound is almost a million times slower.",
    (
        "Purchases up to one thousand may be made by the team. Above that limit the director of finance "
        "must approve them."
    ),
    "The singer won a contest at the age of nineteen; her second album sold two million copies and brought her fame.",
    "A new version is released every six weeks. Changes that break older clients are announced two versions before.",
    (
        "Deer, foxes and many kinds of birds live in the forest. Wolves came back in the last century "
        "from the mountains."
    ),
    "We measure how soon customers get an answer and how content they are. Each month the figures go to all teams.",
    (
        "An invoice may be higher because more seats were used or because a discount has ended; the "
        "details are on page two."
    ),
    "The painter studied at the academy of the capital, where he met the friends with whom he later opened a studio.",
    "Paper, glass and plastic go into separate bins. Batteries are brought back to a shop and never thrown away.",
    "When a contract ends, the data is kept for ninety days, can be exported in that time and is then deleted.",
    "In cold weather the battery gives less power. Warm the engine for some minutes before you drive at full load.",
    "The committee has seven members, who are elected for two years and choose one of themselves to lead it.",
    "At the spring festival families eat rice cakes and fish, visit their relatives and watch the lanterns at night.",
    "In their first week new employees meet their mentor, set up their machine and read how the company works.",
    "The railway was built between 1871 and 1879 and linked the port with the mines in the hills.",
    "Lower the quality of shadows, close other programs and install the newest driver: the game then runs faster.",
)

_CHINESE_PASSAGES = (
    "图书馆工作日从九点开到六点，星期天一点关门；书随时都可以归还。",
    "父母最多可以休十六周的假，要提前两个月告诉经理，并填写申请表。",
    "老城位于河的两岸，三座建于十四世纪的石桥把两边连在一起。",
    "如果服务器不再响应，先查看健康页面，再重启服务，并通知值班人员。",
    "这个系列始于1954年一部关于两兄弟的小说，作者去世前又写了五卷。",
    "把面粉、水和盐混合，揉十分钟，然后放在温暖的地方静置两个小时。",
    "成本上升、订单减少，公司因此关闭了北方的工厂，把生产迁到国外。",
    "差旅费用在三十天内报销，请保留票据；餐费每天不超过四十美元。",
    "每队有十一名球员上场，最多七名替补，一场比赛分为两个四十五分钟的半场。",
    "入学之前，儿童应当接种麻疹和破伤风疫苗，由医生保存记录。",
    "打开账户设置，选择安全，输入一次旧密码和两次新密码，然后保存。",
    "历史学家认为贸易、宗教和王位之争引发了这场持续八年的战争。",
    "员工把车停在办公室后面的车库，访客在前台领取停车券，不用付费。",
    "保单涵盖火灾、水灾和风暴造成的损失，不包括所有人故意造成的损坏。",
    "光每秒大约传播三十万公里，声音几乎慢一百万倍。",
    "一千元以内的采购可以由团队决定，超过限额必须由财务总监批准。",
    "这位歌手十九岁时在比赛中获胜，她的第二张专辑售出两百万张，使她成名。",
    "每六周发布一个新版本，影响旧客户端的变更会提前两个版本公布。",
    "森林里有鹿、狐狸和许多鸟类，狼在上个世纪从山里回来了。",
    "我们衡量客户多久得到答复以及他们是否满意，每个月把数据发给所有团队。",
    "账单变高可能是因为使用了更多席位，或者折扣已经结束，细节见第二页。",
    "这位画家在首都的美术学院学习，在那里结识了后来一起开画室的朋友。",
    "纸张、玻璃和塑料分别放进不同的垃圾桶，电池要送回商店，不能扔掉。",
    "合同结束后，数据保留九十天，在此期间可以导出，然后被删除。",
    "天冷时电池的电量较少，全速行驶之前先让发动机预热几分钟。",
    "委员会有七名成员，任期两年，由他们自己选出一名负责人。",
    "春节时家人一起吃年糕和鱼，走亲访友，晚上观看花灯。",
    "入职第一周，新员工与导师见面，配置电脑，并了解公司如何运作。",
    "这条铁路建于1871年至1879年之间，把港口和山里的矿区连接起来。",
    "降低阴影质量，关闭其他程序，安装最新的驱动，游戏就会运行得更快。",
)

REFERENCE_TEXTS: Final = {
    TextKind.QUERY: {WritingSystem.LATIN: _ENGLISH_QUESTIONS, WritingSystem.HAN: _CHINESE_QUESTIONS},
    TextKind.PASSAGE: {WritingSystem.LATIN: _ENGLISH_PASSAGES, WritingSystem.HAN: _CHINESE_PASSAGES},
}
REFERENCE_DIGEST: Final = sha256(repr(REFERENCE_TEXTS).encode()).hexdigest()[:12]
