"""Addresses that the environment completes, and where a key may go."""

import pytest

from thoughtline.providers.catalogue import BY_NAME

ENV = {"AWS_REGION": "eu-central-1", "ANTHROPIC_FOUNDRY_RESOURCE": "mine"}


def test_an_address_is_completed_by_the_environment():
    bedrock, azure = BY_NAME["bedrock"], BY_NAME["azure"]
    assert bedrock.located({}).base_url.startswith("https://bedrock-runtime.us-east-1.")
    made = bedrock.located(ENV)
    assert made.base_url == "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1"
    assert made.endpoints["messages"].startswith("https://bedrock-runtime.eu-central-1.")
    assert azure.located(ENV).base_url == "https://mine.services.ai.azure.com/openai/v1"
    assert azure.located({}) is None
    assert azure.missing == "AZURE_RESOURCE_NAME"
    assert BY_NAME["openai"].located({}) is BY_NAME["openai"]


@pytest.mark.parametrize("value", ["evil.example/", "a.b", "x@y", "", "a/../b", "a?b", "a#"])
def test_a_variable_completes_one_segment_and_nothing_else(value):
    assert BY_NAME["azure"].located({"AZURE_RESOURCE_NAME": value}) is None


def test_a_key_goes_to_every_region_and_nowhere_else():
    owns = BY_NAME["bedrock"].owns
    assert owns("https://bedrock-runtime.ap-south-1.amazonaws.com/openai/v1")
    assert not owns("http://bedrock-runtime.ap-south-1.amazonaws.com")
    assert not owns("https://bedrock-runtime.evil.example.amazonaws.com")
    assert not owns("https://bedrock-runtime.x.amazonaws.com.evil.example")
    assert not owns("https://user@bedrock-runtime.x.amazonaws.com")
