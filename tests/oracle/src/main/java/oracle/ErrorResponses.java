package oracle;

import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** What Kafka's own request classes answer when the whole request failed. */
final class ErrorResponses {
    private ErrorResponses() {
    }

    /** Returns the body of the error response to a request, or no bytes where Kafka sends none. */
    static byte[] answer(short apiKey, short version, int throttleMs, short code, byte[] request) {
        ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(request));
        AbstractRequest parsed = AbstractRequest.parseRequest(ApiKeys.forId(apiKey), version, readable).request;
        AbstractResponse response = parsed.getErrorResponse(throttleMs, Errors.forCode(code).exception());
        if (response == null) {
            return new byte[0];
        }
        ByteBuffer body = MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
        return MessageUtil.byteBufferToArray(body);
    }
}
