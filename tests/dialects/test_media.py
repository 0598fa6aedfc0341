from thoughtline.dialects.content import content_parts
from thoughtline.dialects.media import as_url, is_media, media
from thoughtline.log.parts import Text

PNG = "data:image/png;base64,iVBORw0KGgo="


def test_a_data_url_is_taken_apart_and_put_together():
    image = media(url=PNG)
    assert (image.kind, image.mime, image.data, image.url) == (
        "image",
        "image/png",
        "iVBORw0KGgo=",
        "",
    )
    assert as_url(image) == PNG


def test_a_url_stays_a_url():
    image = media(url="https://pictures.example/a.png", kind="image")
    assert as_url(image) == "https://pictures.example/a.png"
    assert is_media(image)
    assert not is_media(media(kind="image"))
    assert not is_media(Text(text="a"))


def test_an_image_is_known_by_its_data_as_in_every_other_request():
    (read,) = content_parts([{"type": "image_url", "image_url": {"url": PNG}}])
    assert media(url=PNG).digest == read.digest
