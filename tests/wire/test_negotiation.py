"""A proxy offers the versions that both the broker and the proxy support."""

from __future__ import annotations

from kafka_msgs import ApiKey, ApiVersionsResponse, FetchRequest, iter_message_classes
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.drafts import kip_88
from kafka_msgs.messages.api_versions_response import ApiVersion, SupportedFeatureKey
from kafka_msgs.wire import cap_api_versions, decode_response, encode_response


def offer(*apis: tuple[int, int, int]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=tuple(ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in apis)
    )


def ranges(response: ApiVersionsResponse) -> list[tuple[int, int, int]]:
    return [(each.api_key, each.min_version, each.max_version) for each in response.api_keys]


def test_versions_are_those_that_both_have() -> None:
    known = FetchRequest.INFO.versions
    both = (ApiKey.FETCH, known.lowest, known.highest)
    assert ranges(cap_api_versions(offer((ApiKey.FETCH, 0, known.highest + 9)))) == [both]
    assert ranges(cap_api_versions(offer((ApiKey.FETCH, 7, 9)))) == [(ApiKey.FETCH, 7, 9)]
    assert ranges(cap_api_versions(offer((ApiKey.FETCH, -(2**15), 2**15 - 1)))) == [both]


def test_apis_without_a_version_in_common_are_left_out() -> None:
    assert ranges(cap_api_versions(offer((ApiKey.FETCH, 0, 3), (999, 0, 5), (ApiKey.METADATA, 9, 9)))) == [
        (ApiKey.METADATA, 9, 9)
    ]


def test_apis_may_be_left_out() -> None:
    offered = offer((ApiKey.FETCH, 4, 12), (ApiKey.METADATA, 9, 9))
    assert ranges(cap_api_versions(offered, without={ApiKey.FETCH})) == [(ApiKey.METADATA, 9, 9)]


def test_a_catalog_says_what_the_proxy_understands() -> None:
    old = MessageCatalog.of([kip_88.OffsetFetchRequest])
    offered = offer((ApiKey.OFFSET_FETCH, 0, 20), (ApiKey.METADATA, 9, 9))
    low, high = kip_88.OffsetFetchRequest.INFO.versions.lowest, kip_88.OffsetFetchRequest.INFO.versions.highest
    assert ranges(cap_api_versions(offered, catalog=old)) == [(ApiKey.OFFSET_FETCH, low, high)]
    both = MessageCatalog.of([kip_88.OffsetFetchRequest], fallback=release_catalog())
    assert both.versions(ApiKey.OFFSET_FETCH, "request") == tuple(range(11))
    assert ranges(cap_api_versions(offered, catalog=both))[0] == (ApiKey.OFFSET_FETCH, 0, 10)


def test_the_highest_versions_in_one_piece_are_offered() -> None:
    class Gap(MessageCatalog):
        def versions(self, api_key: int, kind: str) -> tuple[int, ...]:
            return (0, 1, 4, 5)

    catalog = Gap({}, (), release_catalog().by_name)
    assert ranges(cap_api_versions(offer((1, 0, 9)), catalog=catalog)) == [(1, 4, 5)]
    assert ranges(cap_api_versions(offer((1, 0, 3)), catalog=catalog)) == [(1, 0, 1)]


def test_everything_else_is_kept() -> None:
    offered = ApiVersionsResponse(
        error_code=35,
        throttle_time_ms=5,
        api_keys=(ApiVersion(api_key=3, min_version=0, max_version=99, unknown_tagged_fields=((7, b"tag"),)),),
        supported_features=(SupportedFeatureKey(name="group.version", min_version=0, max_version=1),),
        finalized_features_epoch=12,
        unknown_tagged_fields=((9, b"\xca\xfe"),),
    )
    capped = cap_api_versions(offered)
    payload = encode_response(capped, 3, correlation_id=1)
    read = decode_response(payload, 18, 3).message
    assert read == capped
    assert capped.unknown_tagged_fields == offered.unknown_tagged_fields
    assert capped.api_keys[0].unknown_tagged_fields == ((7, b"tag"),)
    assert (capped.supported_features, capped.finalized_features_epoch) == (offered.supported_features, 12)
    assert (capped.error_code, capped.throttle_time_ms) == (35, 5)


def test_an_offer_of_the_whole_release_stays_as_it_is() -> None:
    requests = [cls.INFO for cls in iter_message_classes() if cls.INFO.kind == "request"]
    offered = offer(*((info.api_key or 0, info.versions.lowest, info.versions.highest) for info in requests))
    assert cap_api_versions(offered) == offered
