def wrap(paper, ribbon):
    from shop.ends.boxes import Parcel

    parcel = Parcel(paper)
    parcel.tie(ribbon)
    return paper.fold()