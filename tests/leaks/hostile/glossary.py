"""Small dictionaries of the hostile models."""


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


def _pairs(text: str) -> dict[str, str]:
    """Read `word=word` pairs; an underline stands for a blank."""
    pairs = (pair.replace("_", " ").partition("=") for pair in text.split())
    return {key: value for key, _, value in pairs}


CHINESE_OF = _pairs(
    """
    approve=批准 approved=批准 manager=经理 head=负责人 department=部门 office=办公室 report=报告 reports=报告
    week=周 month=月 day=天 days=天 hours=小时 year=年 customer=客户 supplier=供应商 price=价格 order=订单
    written=书面 reason=理由 rule=规则 rules=规则 people=人员 sales=销售 team=团队 test=测试 tested=测试 card=卡
    key=钥匙 keys=钥匙 sign=签字 signed=签字 sealed=封存 board=委员会 meeting=会议 travel=出差 late=迟 early=早
    before=之前 after=之后 within=以内 without=没有 never=从不 always=总是 must=必须 only=只有 both=两者 each=每
    battery=电池 sea=海 ship=船 station=站 water=水 pressure=压力 image=镜像 release=发布 released=发布 fleet=船队
    instrument=仪器 instruments=仪器 duty=值班 officer=官员 salary=薪酬 pay=薪酬 grade=职级 paid=支付 money=钱
    cost=费用 work=工作 review=评审 list=清单 document=文件 records=记录 outage=中断 shore=岸 page=页面 issue=问题
    request=请求 change=变更 security=安全 support=支持 user=用户 company=公司 member=成员 members=成员 project=项目
    code=代码 process=流程
    """
)

_MORE = _pairs(
    """
    必须=has_to 签字=signature 检查=inspection 货物=goods 仓库=warehouse 培训=training 证书=certificate
    投诉=complaint 数据=records 测量=measuring 校准=calibration 采购=purchasing 招标=tender 评委=jury 赔偿=damages
    补偿=compensation 登记=registered 主管=supervisor 现场=on_site 不得=must_not 可以=may 历史=history 建筑=building
    """
)

ENGLISH_OF = {chinese: english for english, chinese in reversed(CHINESE_OF.items())} | _MORE

FRENCH_OF = _pairs(
    """
    must=doit may=peut the=le and=et of=de is=est are=sont by=par in=dans not=pas with=avec for=pour to=à
    before=avant after=après only=seulement each=chaque day=jour days=jours who=qui that=que
    """
)

OTHER_ENGLISH = _pairs(
    """
    must=has_to may_not=is_not_allowed_to may=is_allowed_to within=inside before=ahead_of after=once_there_is
    because=since whoever=anyone_who is_approved_by=gets_its_approval_from approved=agreed at_least=no_fewer_than
    every=each each=every about=roughly shall=will without=lacking begins=starts ends=stops and_not=rather_than
    paid=refunded kept=held needs=calls_for whether=if until=up_to_when which=that also=too
    """
)

OTHER_CHINESE = _pairs(
    """
    须=要 应当=要 不得=不可以 由=让 并=同时 及=和 或=或者 均=都 以内=之内 之前=以前 后=之后 是指=说的是 因此=所以
    已经=早就 没有=缺少 负责=管 其中=里面 必须=一定要 可以=能 任何=随便哪个 不需=用不着 超过=多于 进行=做 目前=现在
    """
)

MEANING_OF_WORD = _pairs(
    """
    bay=湾 amber=琥珀 lantern=灯笼 anchor=锚 beacon=灯塔 silver=银 stone=石 spring=春 tide=潮 gate=门 flood=洪水
    zone=区 hall=厅 book=书 red=红 lamp=灯 call=呼叫 loop=环 station=站 line=线 second=第二 dark=暗 wooden=木
    quiet=静 hollow=空心 gentle=温柔 narrow=窄 sleepy=困 crooked=弯 patient=耐心 kettle=水壶 doorstep=门阶 bucket=桶
    hillside=山坡 staircase=楼梯 orchard=果园 chimney=烟囱 window=窗 garden=花园 bishop=主教 page=书页 hunter=猎人
    field=田野 rose=玫瑰 grace=优雅 hope=希望 frank=坦率 dean=院长
    """
)

MEANING_OF_CHARACTER = _pairs(
    """
    白=white 鹭=heron 红=red 签=slip 黄=yellow 单=sheet 龙=dragon 骨=bone 珊=coral 潮=tide 目=eye 磨=grinding
    石=stone 深=deep 渊=abyss 青=green 海=sea 蓝=blue 旗=flag 浮=floating 玉=jade 听=listening 鲸=whale 回=return
    声=voice 波=wave 浪=wave 微=small 星=star 汉=river 清=clear 礁=reef 灯=lamp 塔=tower 桥=bridge 晚=evening
    风=wind 计=plan 高=high 峰=peak 库=store 山=mountain 舟=boat 月=moon 秋=autumn 云=cloud 夏=summer 南=south
    宫=palace 东=east 方=square 上=upper 官=officer 百=hundred 里=mile
    """
)

PLAIN_WORDS = words_of(
    """
    access action advice again agree always answer attention aim better before begin both build busy care check
    clear change close common control decide delay detail direct does duty each early effort enough ensure equal
    even every exact example expect fair few find first follow friend future gap general give good group grow guide
    habit happen hard help here high hold idea improve inform inside issue item job join judge just keep key kind
    know lack large late lead learn less level local look main make many matter mind more move name near need never
    next note office often once only open order other own part people plan plain point practice problem quality
    quick quiet quite raise rather reach real reason record result review risk rule same see seem share short show
    simple size slow staff step strong sure system task team tell think time together tool total trust try under
    unit until use usual value very view visit wait walk want watch way weak well where whole with work worry write
    year yet young your zone zeal exist extra box fix tax six mix buzz quiz jazz major object project subject adjust
    banjo equip square unique acquire request require azure amazing size seize dozen oxygen eye type style system
    rhythm syntax ask asked upon apply able about hurry happy story study country city fly sky why my by club job
    crab grab web cab music topic public basic specific traffic logic of if half self proof brief staff belief bag
    leg big drag among long strong through enough though such much reach each taxi ski alibi risk think book look
    talk walk mail goal deal total team claim from them two too also who zero gap help keep group step us this plus
    focus less has that what about let you menu flu thou new how law view allow know low
    """
)
