from thoughtline.dialects.chat.media import written_media, written_result_media
from thoughtline.dialects.media import media
from thoughtline.log.parts import Blob, Result

PNG = "data:image/png;base64,iVBORw0KGgo="


def test_images_files_and_audio_have_parts_of_their_own():
    image = written_media(media(url=PNG, detail="original"))
    assert image == {"type": "image_url", "image_url": {"url": PNG, "detail": "high"}}
    pdf = media(data="JVBERi0=", mime="application/pdf", name="a.pdf")
    assert written_media(pdf)["file"]["filename"] == "a.pdf"
    sound = written_media(media(data="UklGRg==", mime="audio/wav"))
    assert sound["input_audio"] == {"data": "UklGRg==", "format": "wav"}


def test_what_cannot_be_said_is_left_out():
    assert written_media(Blob(kind="image", digest="0")) is None


def test_what_a_tool_showed_names_its_call():
    shown = written_result_media(Result(content="", call="c1", media=(media(url=PNG),)))
    assert "c1" in shown[0]
    assert shown[1]["type"] == "image_url"
    assert written_result_media(Result(content="", call="c1")) == []
