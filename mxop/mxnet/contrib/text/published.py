"""What published files of vectors are called."""

#: Each name with the archive that the file comes in.
GLOVE = {
    f"glove.{text}.{size}d.txt": f"glove.{text}.zip"
    for text, sizes in {
        "42B": [300],
        "6B": [50, 100, 200, 300],
        "840B": [300],
        "twitter.27B": [25, 50, 100, 200],
    }.items()
    for size in sizes
}

_WIKIPEDIAS = """
    aa ab ace ady af ak als am an ang ar arc arz as ast av ay az azb ba bar bat_smg bcl be bg bh bi bjn bm bn bo bpy
    br bs bug bxr ca cbk_zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da de diq dsb dv dz ee el eml
    en eo es et eu ext fa ff fi fiu_vro fj fo fr frp frr fur fy ga gag gan gd gl glk gn gom got gu gv ha hak haw he
    hi hif ho hr hsb ht hu hy hz ia id ie ig ii ik ilo io is it iu ja jam jbo jv ka kaa kab kbd kg ki kj kk kl km kn
    ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lg li lij lmo ln lo lrc lt ltg lv mai map_bms mdf mg mh mhr
    mi min mk ml mn mo mr mrj ms mt mus mwl my myv mzn na nah nap nds nds_nl ne new ng nl nn no nov nrm nso nv ny oc
    olo om or os pa pag pam pap pcd pdc pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa_rup roa_tara ru rue rw
    sa sah sc scn sco sd se sg sh si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta tcy te tet tg th ti
    tk tl tn to tpi tr ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi yo za
    zea zh zh_classical zh_min_nan zh_yue zu
"""
_ALIGNED = "ar bg ca cs da de el en es et fi fr he hr hu id it mk nl no pl pt ro ru sk sl sv tr uk vi"

FAST_TEXT = {
    f"{name}.vec": f"{name}.zip"
    for name in (
        "crawl-300d-2M", "wiki-news-300d-1M", "wiki-news-300d-1M-subword",
        *(f"wiki.{code}" for code in _WIKIPEDIAS.split()), *(f"wiki.multi.{code}" for code in _ALIGNED.split()),
    )
}  # fmt: skip
