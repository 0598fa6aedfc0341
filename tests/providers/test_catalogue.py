"""What is known of providers by their names and their models' names."""

import pytest

from thoughtline.providers.catalogue import (
    BY_NAME,
    infer_policy,
    known_provider,
    matches_model,
    same_company,
)


@pytest.mark.parametrize("name", ["DeepSeek", "DEEPSEEK", "xiaomi-mimo", "Xiaomi-MiMo", "MiMo"])
def test_a_mirror_is_named_in_any_case(name):
    policy = "deepseek" if "deep" in name.lower() else "mimo"
    assert infer_policy("http://127.0.0.1:8000/v1", name) == policy


def test_providers_are_known_by_name_in_any_case_and_by_other_names():
    assert known_provider("DeepSeek") is BY_NAME["deepseek"]
    assert known_provider("xiaomi-mimo") is known_provider("Xiaomi-MiMo") is BY_NAME["mimo"]
    assert known_provider("opencode-go") is BY_NAME["opencode-go"]
    assert known_provider("nobody") is None


@pytest.mark.parametrize(
    ("pattern", "model", "matches"),
    [
        ("deepseek-*", "deepseek-v4-pro", True),
        ("deepseek-*", "DeepSeek-V4-Pro", True),
        ("MiniMax-*", "minimax-m3", True),
        ("deepseek-*", "deepseek-ai/DeepSeek-R1", False),  # its owner hosts nothing
        ("*/*", "deepseek-ai/DeepSeek-R1", True),
        ("deepseek-ai/*", "DeepSeek-AI/DeepSeek-R1", True),
        ("*", "deepseek-ai/DeepSeek-R1", True),
        ("*DeepSeek*", "deepseek-ai/DeepSeek-R1", True),
        ("qwen[0-9]*", "Qwen3-235B", True),
    ],
)
def test_patterns_ignore_case_and_stop_at_an_owner(pattern, model, matches):
    assert matches_model(pattern, model) is matches


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://api.moonshot.cn", "https://api.moonshot.ai", True),
        ("https://api.moonshot.ai", "https://api.moonshot.ai/anthropic/v1", True),
        ("https://api.deepseek.com", "https://api.deepseek.com/anthropic/v1", True),
        ("https://dashscope.aliyuncs.com/a", "https://dashscope-intl.aliyuncs.com/b", True),
        ("https://api.minimax.io", "https://api.minimaxi.com", True),
        ("https://api.z.ai/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4", True),
        ("https://api.together.xyz", "https://api.together.ai", True),
        ("https://api.siliconflow.cn", "https://api.siliconflow.com", True),
        ("https://api.deepseek.com", "https://api.moonshot.ai", False),
        ("https://deepseek.example", "https://api.deepseek.com", False),
        ("https://one.example/v1", "https://two.example/v1", False),
        ("https://one.example/a", "https://one.example/b", False),
        ("https://one.openai.azure.com", "https://two.openai.azure.com", False),
        ("", "", False),
    ],
)
def test_hosts_of_one_company(one, other, same):
    assert same_company(one, other) is same
