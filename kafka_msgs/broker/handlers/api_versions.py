"""ApiVersions: the supported APIs (KIP-35, KIP-511) and features (KIP-584) of the cluster."""

from __future__ import annotations

import re
from typing import Final

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker.controller.image_types import SUPPORTED_FEATURES
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.api_versions_request import ApiVersionsRequest
from kafka_msgs.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

__all__ = ["HANDLERS", "unsupported_version_response"]

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_WITH_SOFTWARE: Final = 3
_NO_NODE: Final = -1
_FIRST_WITH_ZERO_LEVELS: Final = 4


def _api_versions(call: ServerCall[ApiVersionsRequest]) -> None:
    request, cluster = call.request, call.cluster
    if call.version >= _FIRST_WITH_SOFTWARE:
        names = request.client_software_name, request.client_software_version
        if not all(_SOFTWARE.fullmatch(each) for each in names):
            raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
        call.session.software_name, call.session.software_version = names
        if (request.cluster_id is None) != (request.node_id == _NO_NODE):
            raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
    wrong_cluster = request.cluster_id is not None and request.cluster_id != cluster.cluster_id
    if wrong_cluster or request.node_id not in (_NO_NODE, call.session.broker_id):
        raise RequestRefusedError(ErrorCode.REBOOTSTRAP_REQUIRED)
    least = 0 if call.version >= _FIRST_WITH_ZERO_LEVELS else 1
    supported = (
        SupportedFeatureKey(name=name, min_version=levels.lowest, max_version=levels.highest)
        for name, levels in SUPPORTED_FEATURES.items()
        if levels.lowest >= least
    )
    finalized = (
        FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
        for name, level in cluster.image.features.items()
    )
    call.respond(
        ApiVersionsResponse(
            # Kafka lists Produce from version 0 on, because old librdkafka clients check for it (KAFKA-18659).
            api_keys=tuple(
                ApiVersion(api_key=key, min_version=lowest, max_version=versions.highest)
                for key, versions in cluster.offered_versions.items()
                for lowest in (0 if key == ApiKey.PRODUCE else versions.lowest,)
            ),
            supported_features=tuple(supported),
            finalized_features_epoch=cluster.image.offset,
            finalized_features=tuple(finalized),
        )
    )


def unsupported_version_response(offered: tuple[int, int]) -> ApiVersionsResponse:
    """Return the response to an unsupported version, with the supported versions of ApiVersions."""
    lowest, highest = offered
    key = ApiVersion(api_key=ApiVersionsRequest.INFO.api_key or 0, min_version=lowest, max_version=highest)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(key,))


HANDLERS: Final = (ApiHandler(ApiVersionsRequest, _api_versions, allowed_unauthenticated=True),)
