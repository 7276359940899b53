import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileWriter;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.protocols.jsoncore.JsonNode;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.BatchResultErrorEntry;
import software.amazon.awssdk.services.sqs.model.ChangeMessageVisibilityBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.SqsException;

/**
 * A client of the crowd: reads requests as lines of JSON, {n, action, input}, calls SQS through the SDK for Java, and writes what it does
 * and is told to its log, and the answer to its output. Arguments: endpoint, log.
 */
class Client {
	static SqsClient sqs;

	public static void main(String[] arguments) throws Exception {
		sqs = SqsClient.builder().endpointOverride(URI.create(arguments[0])).region(Region.US_EAST_1)
			.credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("any", "any")))
			.overrideConfiguration(o -> o.retryStrategy(r -> r.maxAttempts(1))).build();
		var log = new BufferedWriter(new FileWriter(arguments[1], StandardCharsets.UTF_8, true));
		var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
		var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
		for (String line; (line = in.readLine()) != null;) {
			var request = JsonNode.parser().parse(line).asObject();
			var input = request.get("input");
			var before = new LinkedHashMap<String, Object>();
			before.put("n", Long.parseLong(request.get("n").asNumber()));
			before.put("at", now());
			before.put("action", request.get("action").asString());
			before.put("input", input);
			write(log, json(before));
			var after = new LinkedHashMap<String, Object>();
			after.put("n", before.get("n"));
			after.put("at", 0L);
			try {
				after.put("reply", call(request.get("action").asString(), input));
			} catch (SqsException e) {
				after.put("code", e.awsErrorDetails().errorCode());
				after.put("message", e.awsErrorDetails().errorMessage());
				after.put("status", (long) e.statusCode());
			} catch (SdkClientException e) {
				after.put("code", e.getClass().getSimpleName());
				after.put("message", e.getMessage());
				after.put("status", 0L);
			}
			after.put("at", now());
			write(log, json(after));
			out.println(json(after));
		}
	}

	static long now() {
		var now = Instant.now();
		return now.getEpochSecond() * 1_000_000_000L + now.getNano();
	}

	static void write(BufferedWriter log, String line) throws Exception {
		log.write(line + "\n");
		log.flush();
	}

	static Map<String, Object> call(String action, JsonNode in) {
		var url = text(in, "QueueUrl");
		var reply = new LinkedHashMap<String, Object>();
		switch (action) {
		case "SendMessage" -> {
			var e = sendEntry(in);
			var r = sqs.sendMessage(b -> b.queueUrl(url).messageBody(e.messageBody()).delaySeconds(e.delaySeconds())
				.messageAttributes(e.messageAttributes()).messageGroupId(e.messageGroupId()).messageDeduplicationId(e.messageDeduplicationId()));
			reply.put("MessageId", r.messageId());
			reply.put("MD5OfMessageBody", r.md5OfMessageBody());
			reply.put("MD5OfMessageAttributes", r.md5OfMessageAttributes());
		}
		case "SendMessageBatch" -> {
			var r = sqs.sendMessageBatch(b -> b.queueUrl(url).entries(entries(in).stream().map(Client::sendEntry).toList()));
			reply.put("Successful", r.successful().stream().map(e -> of("Id", e.id(), "MessageId", e.messageId(),
				"MD5OfMessageBody", e.md5OfMessageBody(), "MD5OfMessageAttributes", e.md5OfMessageAttributes())).toList());
			reply.put("Failed", failed(r.failed()));
		}
		case "ReceiveMessage" -> {
			var r = sqs.receiveMessage(b -> b.queueUrl(url).maxNumberOfMessages(number(in, "MaxNumberOfMessages"))
				.waitTimeSeconds(number(in, "WaitTimeSeconds")).visibilityTimeout(number(in, "VisibilityTimeout"))
				.messageAttributeNames("All").messageSystemAttributeNames(MessageSystemAttributeName.ALL));
			reply.put("Messages", r.messages().stream().map(Client::message).toList());
		}
		case "DeleteMessage" -> sqs.deleteMessage(b -> b.queueUrl(url).receiptHandle(text(in, "ReceiptHandle")));
		case "DeleteMessageBatch" -> {
			var r = sqs.deleteMessageBatch(b -> b.queueUrl(url).entries(entries(in).stream().map(e -> DeleteMessageBatchRequestEntry.builder()
				.id(text(e, "Id")).receiptHandle(text(e, "ReceiptHandle")).build()).toList()));
			reply.put("Successful", r.successful().stream().map(e -> of("Id", e.id())).toList());
			reply.put("Failed", failed(r.failed()));
		}
		case "ChangeMessageVisibility" -> sqs.changeMessageVisibility(b -> b.queueUrl(url).receiptHandle(text(in, "ReceiptHandle"))
			.visibilityTimeout(number(in, "VisibilityTimeout")));
		case "ChangeMessageVisibilityBatch" -> {
			var r = sqs.changeMessageVisibilityBatch(b -> b.queueUrl(url).entries(entries(in).stream().map(e -> ChangeMessageVisibilityBatchRequestEntry
				.builder().id(text(e, "Id")).receiptHandle(text(e, "ReceiptHandle")).visibilityTimeout(number(e, "VisibilityTimeout")).build()).toList()));
			reply.put("Successful", r.successful().stream().map(e -> of("Id", e.id())).toList());
			reply.put("Failed", failed(r.failed()));
		}
		case "GetQueueAttributes" -> reply.put("Attributes",
			sqs.getQueueAttributes(b -> b.queueUrl(url).attributeNames(QueueAttributeName.ALL)).attributesAsStrings());
		default -> throw new IllegalArgumentException(action);
		}
		return reply;
	}

	static SendMessageBatchRequestEntry sendEntry(JsonNode in) {
		var attributes = new LinkedHashMap<String, MessageAttributeValue>();
		in.field("MessageAttributes").ifPresent(all -> all.asObject().forEach((name, a) -> attributes.put(name, MessageAttributeValue.builder()
			.dataType(text(a, "DataType")).stringValue(text(a, "StringValue"))
			.binaryValue(a.field("BinaryValue").map(v -> SdkBytes.fromByteArray(Base64.getDecoder().decode(v.asString()))).orElse(null)).build())));
		return SendMessageBatchRequestEntry.builder().id(text(in, "Id")).messageBody(text(in, "MessageBody")).delaySeconds(number(in, "DelaySeconds"))
			.messageAttributes(attributes.isEmpty() ? null : attributes).messageGroupId(text(in, "MessageGroupId"))
			.messageDeduplicationId(text(in, "MessageDeduplicationId")).build();
	}

	static Map<String, Object> message(Message m) {
		var attributes = new LinkedHashMap<String, Object>();
		m.messageAttributes().forEach((name, a) -> attributes.put(name, of("DataType", a.dataType(), "StringValue", a.stringValue(),
			"BinaryValue", a.binaryValue() == null ? null : Base64.getEncoder().encodeToString(a.binaryValue().asByteArray()))));
		return of("MessageId", m.messageId(), "ReceiptHandle", m.receiptHandle(), "Body", m.body(), "MD5OfBody", m.md5OfBody(),
			"Attributes", m.attributesAsStrings(), "MessageAttributes", attributes);
	}

	static List<Object> failed(List<BatchResultErrorEntry> all) {
		return all.stream().map(e -> (Object) of("Id", e.id(), "Code", e.code(), "Message", e.message())).toList();
	}

	static Map<String, Object> of(Object... pairs) {
		var map = new LinkedHashMap<String, Object>();
		for (int i = 0; i < pairs.length; i += 2) {
			if (pairs[i + 1] != null) {
				map.put((String) pairs[i], pairs[i + 1]);
			}
		}
		return map;
	}

	static List<JsonNode> entries(JsonNode in) {
		return in.field("Entries").get().asArray();
	}

	static String text(JsonNode in, String name) {
		return in.field(name).map(JsonNode::asString).orElse(null);
	}

	static Integer number(JsonNode in, String name) {
		return in.field(name).map(v -> Integer.valueOf(v.asNumber())).orElse(null);
	}

	/** json is a value as JSON text. */
	static String json(Object value) {
		if (value instanceof JsonNode n) {
			if (n.isObject()) {
				return json(n.asObject());
			}
			if (n.isArray()) {
				return json(n.asArray());
			}
			return n.isNumber() ? n.asNumber() : json(n.asString());
		}
		if (value instanceof Map<?, ?> map) {
			return map.entrySet().stream().map(e -> json(e.getKey()) + ":" + json(e.getValue())).collect(Collectors.joining(",", "{", "}"));
		}
		if (value instanceof List<?> list) {
			return list.stream().map(Client::json).collect(Collectors.joining(",", "[", "]"));
		}
		if (value instanceof Long || value == null) {
			return String.valueOf(value);
		}
		var text = new StringBuilder("\"");
		for (char c : value.toString().toCharArray()) {
			if (c == '"' || c == '\\' || c < ' ') {
				text.append(String.format("\\u%04x", (int) c));
			} else {
				text.append(c);
			}
		}
		return text.append('"').toString();
	}
}
