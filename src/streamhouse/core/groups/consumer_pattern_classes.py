"""The named classes of characters in RE2's syntax, each as the characters of it that a topic's name can have."""

from __future__ import annotations

import string

TOPIC_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")
WORD_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_")

_NONE = frozenset[str]()
_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_letters)

PERL_CLASSES = {
    "d": _DIGITS,
    "D": TOPIC_CHARACTERS - _DIGITS,
    "w": WORD_CHARACTERS,
    "W": TOPIC_CHARACTERS - WORD_CHARACTERS,
    "s": _NONE,
    "S": TOPIC_CHARACTERS,
}

POSIX_CLASSES = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": TOPIC_CHARACTERS,
    "blank": _NONE,
    "cntrl": _NONE,
    "digit": _DIGITS,
    "graph": TOPIC_CHARACTERS,
    "lower": frozenset(string.ascii_lowercase),
    "print": TOPIC_CHARACTERS,
    "punct": frozenset("._-"),
    "space": _NONE,
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD_CHARACTERS,
    "xdigit": frozenset(string.hexdigits),
}

# General categories and scripts of Unicode. Few have a character that a topic's name can have; the others are known so
# that a pattern with them is told from one with a mistake in it.
_INHABITED = {
    "Any": TOPIC_CHARACTERS,
    "L": _LETTERS,
    "Ll": frozenset(string.ascii_lowercase),
    "Lu": frozenset(string.ascii_uppercase),
    "N": _DIGITS,
    "Nd": _DIGITS,
    "P": frozenset("._-"),
    "Pc": frozenset("_"),
    "Pd": frozenset("-"),
    "Po": frozenset("."),
    "Common": _DIGITS | frozenset("._-"),
    "Latin": _LETTERS,
}
_CATEGORIES = "C Cc Cf Co Cs Lm Lo Lt M Mc Me Mn Nl No Pe Pf Pi Ps S Sc Sk Sm So Z Zl Zp Zs"
_SCRIPTS = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo
    Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Coptic
    Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan
    Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya
    Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese
    Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Lepcha Limbu
    Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin
    Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean
    Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic
    Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya
    Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada
    Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa
    Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai
    Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""
UNICODE_CLASSES = dict.fromkeys(f"{_CATEGORIES} {_SCRIPTS}".split(), _NONE) | _INHABITED
