"""Chinese edits of a question, as `edits_en.py` has English ones."""

from __future__ import annotations

import re
from random import Random

from edits_en import Edit, other_number, words

OPPOSITES = words(
    "多 少|大 小|高 低|快 慢|开 关|开通 关闭|打开 关闭|提前 延期|增加 减少|提高 降低|安装 卸载|"
    "上传 下载|收入 支出|转入 转出|存 取|买 卖|借款 还款|借 还|男 女|早上 晚上|白天 晚上|今天 "
    "明天|昨天 今天|今年 明年|上 下|前 后|左 右|冷 热|新 旧|长 短|好 坏|最好 最差|容易 难|胖 "
    "瘦|成功 失败|绑定 解绑|登录 退出|注册 注销|添加 删除|允许 禁止|赢 输|最大 最小|最高 最低|"
    "便宜 贵|免费 收费|东 西|南 北|男生 女生|老公 老婆|爸爸 妈妈|哥哥 姐姐|支持 不支持|优点 "
    "缺点|好处 坏处|同意 拒绝|冻结 解冻|周末 工作日|国内 国外|本人 他人|线上 线下|夏天 冬天|"
    "手机 电脑|收 付|进 出|增肥 减肥|加 减|之前 之后|以前 以后|以上 以下|启用 停用|激活 停用|"
    "关注 取关|公开 隐藏|导入 导出|发送 接收|连接 断开|升级 降级|静音 取消静音|锁定 解锁|拉黑 "
    "解除拉黑|充值 提现|入职 离职|结婚 离婚|起床 睡觉|上班 下班|开始 结束|最早 最晚|父亲 母亲|"
    "儿子 女儿|老师 学生|房东 租客|买家 卖家"
)
SIBLINGS = words(
    "花呗 借呗 余额宝 网商贷|微信 支付宝 淘宝 京东 微博|北京 上海 广州 深圳 成都 杭州 武汉 "
    "重庆|苹果 华为 小米 三星|中国 美国 日本 韩国 英国 法国|二 三 四 五 六 七 八 九 十|安卓 "
    "苹果|英语 日语 法语 韩语 汉语|猫 狗 兔子|信用卡 储蓄卡 身份证|春天 夏天 秋天 冬天|星期一 "
    "星期二 星期三 星期四 星期五|周一 周二 周三 周四 周五 周六 周日|红色 蓝色 绿色 黑色 白色|"
    "上午 下午|上午 中午 晚上|早上 下午|一月 二月 三月 六月 八月 十月 十二月|小时 分钟 天|每天 "
    "每周 每月 每年|本周 下周 上周|这个月 下个月 上个月|手机号 密码 邮箱 地址|公司 学校 医院 "
    "银行|早餐 午餐 晚餐|牛奶 咖啡 茶 果汁|感冒 发烧 咳嗽|语文 数学 英语 物理|公斤 斤 克|元 块 "
    "美元|孩子 老人 孕妇"
)
QUANTITIES = words(
    "全部 部分|所有 部分|都 只|至少 最多|最少 最多|超过 不到|以内 以外|每个 某个|一次 两次|"
    "总是 偶尔|必须 可以|只能 也能|大于 小于|平均 最高"
)
QUESTION_WORDS = [
    ("为什么", ["什么时候", "在哪里"]),
    ("怎么", ["为什么要", "什么时候"]),
    ("哪里", ["什么时候"]),
    ("什么时候", ["哪里", "为什么"]),
    ("多少钱", ["什么颜色", "多久"]),
    ("如何", ["为什么", "何时"]),
    ("多久", ["多少钱"]),
    ("谁", ["为什么"]),
]
QUALIFIERS = words(
    "在北京 用手机 在电脑上 没有身份证 未成年人 晚上 周末 在国外 免费 不用密码 一个人 孕妇 "
    "学生 老年人 第一次"
)[0]
SYNONYMS = words(
    "怎么 如何 怎样 咋|为什么 为啥 为何|什么 啥|哪里 哪儿 什么地方|多少钱 什么价格|什么时候 "
    "何时|多久 多长时间|手机号 手机号码|好看 漂亮|修改 更改 变更|更换 换|取消 撤销|开通 开启|"
    "喜欢 爱|电影 影片|方法 办法|原因 理由|便宜 实惠|增加 提高|怎么办 咋办|吗 么|能不能 "
    "可不可以 能否|是不是 是否|有没有 有无|还款 还钱|借款 借钱|无法 不能 没法|购买 买|删除 "
    "删掉|查看 查询|找回 恢复|登录 登陆|为何 怎么会|马上 立刻|显示 提示|帮我 给我|应该 该|需要 "
    "要|非常 很|大概 大约|告诉 说|妈妈 母亲|爸爸 父亲|医生 大夫|星期 周|软件 应用|介绍 推荐"
)
PERSON = (
    "我|你|他|她|别人|朋友|老师|学生|妈妈|爸爸|老公|老婆|男生|女生|"
    "男人|女人|孩子|父母|老板|员工|苹果|华为|小米"
)
# Words in which a sign of NEGATED means something else.
COMPOUNDS = (
    "还是|但是|只有|可能|只要|功能|机会|智能|性能|需要|主要|所有|没有|作用|费用|信用|使用|应用"
)
NEGATED = ["能", "可以", "会", "有", "是", "要", "收到", "用", "支持"]


def swap_within(groups: list[list[str]], text: str, random: Random) -> str | None:
    """One word of a group for another; longer words first, so that 不能 is not taken for 能."""
    found = [(word, group) for group in groups for word in group if word in text]
    found = [(w, g) for w, g in found if not any(w != o and w in o and o in text for o, _ in found)]
    if not found:
        return None
    word, group = random.choice(found)
    if word in "多少" and "多少" in text:
        return None
    return text.replace(word, random.choice([other for other in group if other != word]), 1)


def opposite(text: str, random: Random) -> str | None:
    return swap_within(OPPOSITES, text, random)


def sibling(text: str, random: Random) -> str | None:
    return swap_within(SIBLINGS, text, random)


def quantity(text: str, random: Random) -> str | None:
    return swap_within(QUANTITIES, text, random)


def number(text: str, random: Random) -> str | None:
    found = list(re.finditer(r"\d+", text, re.ASCII))
    if not found:
        return None
    match = random.choice(found)
    return text[: match.start()] + other_number(match.group(), random) + text[match.end() :]


def negation(text: str, random: Random) -> str | None:
    if re.search("能不能|会不会|有没有|是不是|好不好|可不可以|要不要|是否|能否", text):
        return None
    removed = [("没有", "有"), ("不能", "能"), ("不会", "会"), ("不了", "得了"), ("不是", "是"),
               ("无法", "可以"), ("不用", "要"), ("不", ""), ("没", "")]  # fmt: skip
    usable = [(old, new) for old, new in removed if old in text][:1]
    bare = re.sub(COMPOUNDS, "", text)
    alone = [word for word in NEGATED if 0 < bare.count(word) == text.count(word)]
    usable += [
        (word, ("没" if word in ("有", "收到") else "不") + word)
        for word in alone
        if f"不{word}" not in text
    ]
    if not usable:
        return None
    old, new = random.choice(usable)
    return text.replace(old, new, 1)


def question_word(text: str, random: Random) -> str | None:
    if "怎么样" in text or "怎么回事" in text or "怎么办" in text:
        return None
    for word, others in QUESTION_WORDS:
        if word in text:
            return text.replace(word, random.choice(others), 1)
    return None


def roles(text: str, random: Random) -> str | None:
    """从甲到乙, 甲比乙, 甲给乙, 甲转乙 exchanged."""
    patterns = [
        r"从(?P<x>[^\W\d]{2,3}?)(?P<m>[到去])(?P<y>[^\W\d]{2})",
        rf"(?P<x>{PERSON})(?P<m>比|给|欠|借给|转给|追|喜欢|告诉|帮)(?P<y>{PERSON})",
        r"(?P<x>花呗|借呗|余额宝|支付宝|微信|银行卡|信用卡|余额)(?P<m>转到|转|换|还|改成?|充值?)(?P<y>花呗|"
        r"借呗|余额宝|支付宝|微信|银行卡|信用卡|余额)",
    ]
    for pattern in random.sample(patterns, len(patterns)):
        match = re.search(pattern, text)
        if match and match["x"] != match["y"]:
            return (
                text[: match.start("x")] + match["y"] + match["m"] + match["x"]
                + text[match.end("y") :]
            )  # fmt: skip
    return None


def qualifier(text: str, random: Random) -> str | None:
    return random.choice(QUALIFIERS) + text if len(text) < 25 else None


def punctuation(text: str, random: Random) -> str | None:
    bare = text.rstrip("？?。！! ")
    return random.choice(
        [bare, bare + "？", bare + "?", bare + "。", text.replace("，", " "), bare + "！",
         text.replace("，", ""), bare + "？？", bare + "~"]
    )  # fmt: skip


def politeness(text: str, random: Random) -> str | None:
    bare = text.rstrip("？?。")
    return random.choice(
        ["请问" + text, "请问一下，" + text, "你好，" + text, "您好" + text, bare + "呢",
         bare + "啊", bare + "，谢谢", bare + "呀？", "麻烦问下" + text, "我想知道" + text,
         "想问一下" + text, "亲，" + text, bare + "，求解答", "帮忙看下" + text,
         bare + "，急", "谁知道" + text]
    )  # fmt: skip


def synonym(text: str, random: Random) -> str | None:
    if re.search("怎么样|怎么回事|什么样|不是|有没有人", text):
        return None
    return swap_within(SYNONYMS, text, random)


def small_words(text: str, random: Random) -> str | None:
    edits = [("我的", ""), ("一下", ""), ("的", ""), ("了", ""), ("请问", ""), ("我", ""),
             ("我", "你"), ("这个", ""), ("是", "是什么" if text.endswith("是") else "是"),
             ("你好", "")]  # fmt: skip
    usable = [(old, new) for old, new in edits if old in text]
    if not usable:
        return None
    old, new = random.choice(usable)
    made = text.replace(old, new, 1)
    return made if len(made) > 3 else None


def typo(text: str, random: Random) -> str | None:
    """A sign for another that sounds alike, the commonest slip of an input method."""
    pairs = [("的", "地"), ("在", "再"), ("账", "帐"), ("登录", "登陆"), ("他", "她"), ("做", "作"),
             ("那", "哪"), ("吗", "嘛"), ("呗", "贝"), ("么", "吗"), ("得", "的")]  # fmt: skip
    usable = [(old, new) for old, new in pairs if old in text]
    if not usable or "哪" in text:
        return None
    old, new = random.choice(usable)
    return text.replace(old, new, 1)


def added_time(text: str, random: Random) -> tuple[str, str] | None:
    """Two questions that differ in the time, the day or the month put before both."""
    if len(text) > 30:
        return None
    hour = random.randint(1, 12)
    days, months = SIBLINGS[12], SIBLINGS[17]
    day, other = random.sample(days, 2)
    month, another = random.sample(months, 2)
    first, second = random.choice(
        [(f"上午{hour}点", f"下午{hour}点"), (f"早上{hour}点", f"晚上{hour}点"), (day, other),
         (month, another), (f"{day}之前", f"{day}之后"), ("今天", "明天")]
    )  # fmt: skip
    return first + text, second + text


DIFFERENT: dict[str, Edit] = {
    "number": number, "opposite": opposite, "sibling": sibling, "negation": negation,
    "qualifier": qualifier, "roles": roles, "quantity": quantity, "question_word": question_word,
}  # fmt: skip
SAME: dict[str, Edit] = {
    "punctuation": punctuation, "politeness": politeness, "synonym": synonym,
    "small_words": small_words, "typo": typo,
}  # fmt: skip
