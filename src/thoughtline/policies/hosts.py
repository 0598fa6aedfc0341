"""Whose endpoint a host is: the policy that speaks for it, where the user named none."""

from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

HOSTS: tuple[tuple[str, str], ...] = (
    ("api.openai.com", "openai"),
    ("chatgpt.com", "codex"),
    ("*.openai.azure.com", "azure"),
    ("*.cognitiveservices.azure.com", "azure"),
    ("*.services.ai.azure.com", "azure"),
    ("api.x.ai", "xai"),
    ("api.anthropic.com", "anthropic"),
    ("bedrock*.amazonaws.com", "bedrock"),
    ("*aiplatform.googleapis.com", "gemini"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.*", "kimi"),
    ("api.kimi.*", "kimi"),
    ("*.xiaomimimo.com", "mimo"),
    ("api.z.ai", "glm"),
    ("open.bigmodel.cn", "glm"),
    ("api.minimax*", "minimax"),
    ("dashscope*.aliyuncs.com", "qwen"),
    ("*.tencentcloudapi.com", "hunyuan"),
    ("*.hunyuan.cloud.tencent.com", "hunyuan"),
    ("api.stepfun.*", "stepfun"),
    ("api.mistral.ai", "mistral"),
    ("openrouter.ai", "openrouter"),
    ("api.groq.com", "groq"),
    ("api.cerebras.ai", "cerebras"),
    ("api.fireworks.ai", "fireworks"),
    ("api.together.*", "together"),
    ("api.siliconflow.*", "siliconflow"),
    ("api.githubcopilot.com", "copilot"),
    ("*.githubcopilot.com", "copilot"),
)


@lru_cache(maxsize=256)
def infer(url: str) -> str:
    """The policy an endpoint's host speaks for; `generic` when it is not known."""
    host = (urlsplit(url).hostname or "").lower()
    return next((name for pattern, name in HOSTS if fnmatchcase(host, pattern)), "generic")
