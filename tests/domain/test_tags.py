"""The policy table against the list in contracts §3."""

from recall_app.domain.tags import TAG_RULES, UNKNOWN_ATTRIBUTES, Policy, rule_for

KEPT = "chat-summary compaction security-finding questionnaire write-plan exit-plan app-blueprint output"
LINES = """write edit search-replace generate-test copy delete rename add-dependency execute-sql read-logs
add-integration enable-nitro problem-report grep explore-code code-search code-search-result codebase-context web-search
web-search-result web-crawl web-fetch read git command mcp-tool-call mcp-tool-result mcp-tool-search mcp-tool-schema
list-files database-schema db-table-schema supabase-table-schema neon-table-schema supabase-project-info
neon-project-info read-guide status image-generation step-limit script test-assertions subagent"""
DROPPED = "search-chats read-chat explore-chat-history"


def names(policy: Policy) -> set[str]:
    return {rule.name for rule in TAG_RULES.values() if rule.policy is policy}


def test_every_tag_of_the_contract_has_its_row() -> None:
    assert names(Policy.KEEP) == {f"dyad-{name}" for name in KEPT.split()}
    assert names(Policy.LINE) == {f"dyad-{name}" for name in LINES.split()}
    assert names(Policy.DROP) == {f"dyad-{name}" for name in DROPPED.split()} | {"think", "thinking"}


def test_every_row_can_be_shown() -> None:
    for rule in TAG_RULES.values():
        assert rule.label
        assert rule.policy is not Policy.LINE or rule.verb
        assert all("{}" in item.form for item in rule.shown)


def test_an_unknown_tag_fails_closed() -> None:
    rule = rule_for("dyad-brand-new")
    assert (rule.policy, rule.verb, rule.shown, rule.is_known) == (Policy.LINE, "brand new", UNKNOWN_ATTRIBUTES, False)
    assert rule_for("dyad-\u200b" + "x" * 70).verb == "tag"
