"""Facts about languages: how words are separated, abbreviations, ordinal numbers."""

from elmokit.errors import ConfigError

# Languages that put spaces between words; the others are tokenised by character or by a dictionary.
_WITH_SPACES = """
aa ab ace af ak als am an ang ar arz as ast av ay az ba bar be bg bho bm bn bo br bs ca ce ceb ckb co cop cr
cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fil fj fo fr fro fy ga gd gl gn got grc gsw gu gv ha haw
he hi ho hr hsb ht hu hy hz id ie ig ik ilo io is it iu jv ka kg ki kj kk kl kn ko kr ks ku kv kw ky la lb lg
li ln lt lu lv mg mh mi mk ml mn mr ms mt na nb nd nds ne ng nl nn no nr nv ny oc oj om or orv os pa pcm pi pl
ps pt qu rm rn ro ru rw sa sc sco sd se sg sh si sk sl sm sms sn so sq sr ss st su sv sw syr ta te tg ti tk tl
tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zu
"""
BY_CHARACTER = frozenset(("zh", "ja", "ii", "lzh", "wuu", "yue", "nan", "hak", "gan"))
BY_DICTIONARY = frozenset(("th", "lo", "km", "my"))
LANGUAGES = frozenset(_WITH_SPACES.split()) | BY_CHARACTER | BY_DICTIONARY

# Lower-cased, without the full stop. A single letter and the like of "a.b." need no entry.
_COMMON = "dr prof nr vol etc vs cf ca fig tel max min st"
_ABBREVIATIONS = {
    "en": """
        mr mrs ms messrs mmes rev hon sr jr gen col capt lt sgt cmdr adm maj sen rep gov pres supt
        mon tue tues wed thu thur thurs fri jan feb apr jun jul aug sep sept oct nov dec
        inc corp co ltd bros assn ave blvd rd dept hwy mt ft univ
        eg ie viz al nos pp ed eds est approx ext misc avg govt ph.d m.d cent
        calif mass tenn conn fla mich minn neb okla wis ariz ark ala colo
    """,
    "de": "bzw evtl ggf hr hrn fr inkl exkl mio mrd std str usw vgl zzgl bspw sog abs art bd jh tsd gem",
    "fr": "m mm mme mmes mlle mgr me ex p pp art av bd éd env janv févr juil sept oct nov déc",
    "es": "sr sra srta sres dra ud uds vd pág págs núm art av avda cía ej ee uu",
    "it": "sig sigg dott avv ing ecc art pag pagg es on geom rag spett",
    "pt": "sr sra srs dra exmo exma pág págs núm art av cia ex",
    "ca": "sr sra dra pàg núm art av etc ex",
    "ro": "dl dna dnei art pag ex alin",
    "nl": "dhr mevr mw drs ir ing mr bijv bv enz resp blz jl incl excl ong",
    "sv": "bl.a t.ex osv dvs kr kl jfr mm s.k ev inkl mfl resp",
    "da": "bl.a f.eks osv kr kl jf mv ca inkl mht pga evt",
    "no": "bl.a f.eks osv kr kl jf mv ca inkl mht pga evt",
    "fi": "esim jne ks mm ns ym yms mrd milj klo os puh",
    "pl": "np inż ul itd itp tzn tzw mgr hab wg zob tys mln mld ok godz św pt m.in",
    "cs": "např atd tj tzv č str mj ing mgr bc tis mil mld sv r",
    "sk": "napr atď tj tzv č str ing mgr tis mil mld sv r",
    "sl": "npr itd oz tj tim št str ga sv",
    "hr": "npr itd tj tzv br str sv gosp mil tis",
    "sr": "npr itd tj tzv br str sv нпр итд тј бр стр др",
    "hu": "pl kb stb ún ill old sz özv ifj",
    "ru": "г гг т д др пр см рис руб коп им ул тыс млн млрд стр проф акад напр обл",
    "uk": "р рр т д ін див рис грн коп ім вул тис млн млрд стор проф акад напр обл",
    "tr": "örn vb bkz yy doç yrd av sn cad sok",
    "id": "bpk hal no jl dll dst",
}
_ABBREVIATIONS["nb"] = _ABBREVIATIONS["nn"] = _ABBREVIATIONS["no"]

# Languages in which a full stop makes a number ordinal: "am 3. Oktober".
_ORDINALS = "de da nb nn no fi et hu cs sk sl hr sr bs is lv tr pl fo lb gsw nds"
ORDINAL_STOP = frozenset(_ORDINALS.split())


def primary(language: str) -> str:
    """Return the first part of a language code, lower-cased: `en` of `en-US` and of `en_US`.

    Raises:
        ConfigError: The language is not one of `LANGUAGES`.

    Example:
        >>> primary("pt_BR")
        'pt'
    """
    code = language.replace("_", "-").split("-")[0].lower()
    if code not in LANGUAGES:
        raise ConfigError(
            f"language {language!r} is not known; "
            f"expected an ISO 639 code, one of: {' '.join(sorted(LANGUAGES))}"
        )
    return code


def abbreviations(language: str | None) -> frozenset[str]:
    """Return the abbreviations of a language, lower-cased and without the last full stop."""
    return frozenset(f"{_COMMON} {_ABBREVIATIONS.get(language or '', '')}".split())
