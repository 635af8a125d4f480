// What is on screen as commands for a shell. Names and values are quoted: what they hold is not the shell's.

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

export function curlRead(topic, { partition, offset }) {
  return `curl -s ${quoted(`${location.origin}/api/v1/topics/${encodeURIComponent(topic)}/partitions/${partition}/records?offset=${offset}&limit=1`)}`;
}

export function curlProduce(topic, body) {
  return `curl -X POST ${quoted(`${location.origin}/api/v1/topics/${encodeURIComponent(topic)}/records`)} -H 'Content-Type: application/json' -d ${quoted(body)}`;
}

export function kcatRead(topic, { partition, offset }, kafkaAddress) {
  return `kcat -C -b ${quoted(kafkaAddress)} -t ${quoted(topic)} -p ${partition} -o ${offset} -c 1`;
}

/** A request's body that stores one record. JSON is sent as it was typed, digit by digit. */
export function produceBody({ key, keyFormat, value, valueFormat, headers, partition }) {
  const written = (text, format) => (text === null ? "null" : format === "json" ? text : JSON.stringify(text));
  const rest = JSON.stringify({ headers, partition: partition ?? null });
  return `{"records": [{"key": ${written(key, keyFormat)}, "value": ${written(value, valueFormat)}, ${rest.slice(1)}], "key_format": "${keyFormat}", "value_format": "${valueFormat}"}`;
}
