"""Short requests out of a small grammar, for rewordings and differences that edits do not reach.

A request is an action on an object. Rewordings say the same action and object in other words in
another frame ("how do i turn on 2fa", "steps to enable two-factor authentication"); traps change
the action to its opposite or a neighbour, the object to another one, or turn a direction around.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from edits_en import words

ACTIONS = {
    "en": words(
        "enable turn_on activate switch_on|disable turn_off deactivate switch_off|delete "
        "remove erase get_rid_of|create set_up make add|cancel stop terminate|renew extend "
        "prolong|change update modify edit|find locate look_up|download get save|upload "
        "send_up|share send|hide|show see view display|reset|recover restore get_back|export|"
        "import|block|unblock|mute|unmute|verify confirm validate|lock|unlock|pause suspend|"
        "resume continue|order buy purchase|return send_back|pay settle|refund|install|"
        "uninstall|connect link pair|disconnect unlink unpair|rename|archive|unarchive|"
        "subscribe_to sign_up_for|unsubscribe_from opt_out_of"
    ),
    "zh": words(
        "开启 打开 开通 启用|关闭 关掉 停用|删除 删掉 清除|创建 新建 添加|取消 撤销|续费 续订|"
        "修改 更改 变更|查找 查询 查看|下载 保存|上传|分享 转发|隐藏|显示|重置|恢复 找回|导出|"
        "导入|拉黑 屏蔽|解除拉黑|静音|取消静音|验证 认证|锁定|解锁|暂停|继续|购买 买|退货 退掉|"
        "支付 付|退款|安装|卸载|绑定 关联|解绑 取消绑定"
    ),
}
OBJECTS = {
    "en": words(
        "two-factor_authentication 2FA two-step_verification|notifications alerts "
        "push_notifications|my_account my_profile|my_subscription my_plan my_membership|"
        "my_password my_passcode|my_email_address my_email|my_phone_number my_mobile_number|"
        "my_payment_method my_card_details|the_invoice the_bill|the_order my_purchase|"
        "my_photos my_pictures|my_contacts my_address_book|dark_mode the_dark_theme|the_app "
        "the_application|the_report the_summary|location_sharing sharing_my_location|my_backup "
        "the_backup|my_credit_card|my_debit_card|the_meeting the_call|the_group_chat "
        "the_group_conversation|my_printer|my_headphones|the_VPN|the_firewall|"
        "automatic_updates auto-updates|automatic_payments autopay|my_savings_account|"
        "my_checking_account|the_gift_card|the_newsletter|an_API_key|the_database|a_user|"
        "a_file a_document|the_shared_folder|the_calendar_event the_appointment|"
        "my_browsing_history|my_order_history|the_warranty|the_flight_booking "
        "the_flight_reservation"
    ),
    "zh": words(
        "花呗|借呗|信用卡|储蓄卡|银行卡|账户 账号|会员|密码|支付密码|手机号 手机号码|邮箱|通知 "
        "消息提醒|订单|发票|自动续费|自动还款|夜间模式 深色模式|指纹支付|人脸识别|好友|"
        "聊天记录|照片 图片|联系人 通讯录|群聊|备份|定位 位置共享|打印机|蓝牙耳机|文件 文档|"
        "课程|优惠券|积分|收货地址 送货地址|实名认证|余额宝|浏览记录"
    ),
}
FRAMES = {
    "en": [
        "how do i {}", "How can I {}?", "How to {}?", "What's the way to {}?", "steps to {}",
        "Can you show me how to {}?", "i want to {}", "I need help to {}", "Is there a way to {}?",
        "where do i go to {}", "What do I have to do to {}?", "how would one {}", "{} how",
        "please help me {}", "What is the procedure to {}?", "I'd like to {}, how?", "can i {}?",
    ],
    "zh": [
        "怎么{}", "如何{}？", "怎样{}", "我想{}，怎么操作", "请问怎么{}", "{}怎么弄", "{}的方法",
        "能不能{}", "在哪里{}", "哪里可以{}", "我要{}", "{}的步骤是什么？",
        "帮我{}", "想要{}该怎么做",
    ],
}  # fmt: skip
ROUTES = {
    "en": ("transfer money from {} to {}", "move files from {} to {}", "switch from {} to {}",
           "convert {} to {}", "travel from {} to {}", "migrate my data from {} to {}",
           "send money to {} from {}", "sync {} with changes from {}"),
    "zh": ("把钱从{}转到{}", "从{}换到{}", "把{}换成{}", "从{}坐车到{}", "把数据从{}导到{}",
           "用{}还{}"),
}  # fmt: skip
PLACES = {
    "en": words(
        "savings checking|iCloud Google_Drive|Android iPhone|Paris London|euros dollars|Gmail "
        "Outlook|my_laptop my_phone|PDF Word|Slack Teams|Berlin Munich|AWS Azure|Spotify "
        "Apple_Music|pounds kilograms|my_wife's_account my_account|MySQL PostgreSQL|"
        "the_old_server the_new_server"
    ),
    "zh": words(
        "花呗 银行卡|余额宝 余额|微信 支付宝|北京 上海|安卓 苹果|电脑 手机|旧手机 新手机|美元 "
        "人民币|信用卡 储蓄卡|公司 家|工商银行 建设银行|广州 深圳"
    ),
}


def compose(language: str, random: Random) -> Iterator[tuple[str, str, int, str]]:
    """An endless row of (a, b, label, kind); about half of them have the label 1."""
    actions, objects = ACTIONS[language], OBJECTS[language]
    frames, routes, places = FRAMES[language], ROUTES[language], PLACES[language]
    joint = " " if language == "en" else ""

    def said(action: list[str], thing: list[str], frame: str | None = None) -> str:
        request = random.choice(action) + joint + random.choice(thing)
        return (frame or random.choice(frames)).format(request)

    while True:
        action, thing = random.choice(actions), random.choice(objects)
        yield said(action, thing), said(action, thing), 1, "reworded"
        frame = random.choice(frames) if random.random() < 0.5 else None
        other = random.choice([other for other in actions if other is not action])
        yield said(action, thing, frame), said(other, thing, frame), 0, "other_action"
        another = random.choice([other for other in objects if other is not thing])
        yield said(action, thing, frame), said(action, another, frame), 0, "other_object"
        route, (start, end) = random.choice(routes), random.choice(places)
        frame = random.choice(frames)
        there = frame.format(route.format(start, end))
        yield there, frame.format(route.format(end, start)), 0, "turned_around"
        yield there, random.choice(frames).format(route.format(start, end)), 1, "same_way"
        yield said(action, thing), said(action, thing), 1, "reworded"
