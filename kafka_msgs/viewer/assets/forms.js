// @ts-check
// The forms of a decoded message for other tools: JSON in Kafka's form, a call of kafka-msgs, and Python.

import { Uuid, hex } from "./decode.js";

/** @typedef {import("./decode.js").Field} Field */

/** @param {Uint8Array} bytes */
export function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}

/** @param {Field} field */
function isFieldValue(field) {
  return field.role !== "part";
}

/** The JSON form of a field: bytes are base64, long numbers stay exact. @param {Field} field @returns {any} */
export function jsonValue(field) {
  if (field.role === "array") {
    return field.value === null ? null : field.kids.filter(isFieldValue).map(jsonValue);
  }
  if (field.role === "struct") {
    return Object.fromEntries(field.kids.filter(isFieldValue).map((kid) => [kid.name, jsonValue(kid)]));
  }
  if (field.value instanceof Uint8Array) {
    return base64(field.value);
  }
  if (field.value instanceof Uuid) {
    return base64(field.value.bytes).slice(0, 22).replaceAll("+", "-").replaceAll("/", "_");
  }
  return field.value;
}

/** Write JSON with exact long numbers, and the numbers that JSON lacks as in Python. @param {any} value @param {string} indent @returns {string} */
export function writeJson(value, indent = "") {
  const deeper = `${indent}  `;
  if (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value))) {
    return String(value);
  }
  if (Array.isArray(value)) {
    return value.length ? `[\n${value.map((each) => deeper + writeJson(each, deeper)).join(",\n")}\n${indent}]` : "[]";
  }
  if (value && typeof value === "object") {
    const entries = Object.entries(value).map(([name, each]) => `${deeper}${JSON.stringify(name)}: ${writeJson(each, deeper)}`);
    return entries.length ? `{\n${entries.join(",\n")}\n${indent}}` : "{}";
  }
  return JSON.stringify(value);
}

/** @param {string} api @param {number} version @param {Field} message */
export function callText(api, version, message) {
  const json = writeJson(jsonValue(message)).replaceAll(/\n */g, " ").replaceAll("'", "\\u0027");
  return `kafka-msgs call ${api} --version ${version} '${json}' -b localhost:9092`;
}

/** @param {string} text */
function pythonText(text) {
  return JSON.stringify(text).replaceAll(/[\u007f-\uffff]/g, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .replaceAll(/\\ud([89ab][0-9a-f]{2})\\ud([c-f][0-9a-f]{2})/g, (_, high, low) => {
      const code = 0x10000 + ((parseInt(`d${high}`, 16) - 0xd800) << 10) + parseInt(`d${low}`, 16) - 0xdc00;
      return `\\U${code.toString(16).padStart(8, "0")}`;
    });
}

/** @param {any} value */
function pythonScalar(value) {
  if (value === null) {
    return "None";
  }
  if (typeof value === "boolean") {
    return value ? "True" : "False";
  }
  if (value instanceof Uint8Array) {
    return value.length ? `bytes.fromhex("${hex(value, "")}")` : 'b""';
  }
  if (value instanceof Uuid) {
    return `UUID("${value}")`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    return `float("${value}")`;
  }
  return typeof value === "string" ? pythonText(value) : String(value);
}

/** @param {Field} field @param {Set<string>} imports @param {string} indent @returns {string} */
function pythonValue(field, imports, indent) {
  const deeper = `${indent}    `;
  const kids = field.kids.filter(isFieldValue);
  if (field.role === "array" && field.value !== null) {
    const items = kids.map((kid) => `${deeper}${pythonValue(kid, imports, deeper)},\n`).join("");
    return items ? `(\n${items}${indent})` : "()";
  }
  if (field.role === "struct" && field.plan) {
    imports.add(`from ${field.plan.m} import ${field.plan.x}`);
    const items = kids.map((kid) => `${deeper}${kid.attribute}=${pythonValue(kid, imports, deeper)},\n`).join("");
    return items ? `${field.plan.x}(\n${items}${indent})` : `${field.plan.x}()`;
  }
  if (field.value instanceof Uuid) {
    imports.add("from uuid import UUID");
  }
  return pythonScalar(field.value);
}

/** @param {number} version @param {Field} message */
export function pythonForm(version, message) {
  /** @type {Set<string>} */
  const imports = new Set();
  const value = pythonValue(message, imports, "");
  const standard = [...imports].filter((line) => line.startsWith("from uuid"));
  const ours = [...imports].filter((line) => !line.startsWith("from uuid")).sort();
  return `${[...standard, ...(standard.length ? [""] : []), ...ours].join("\n")}\n\nmessage = ${value}\ndata = message.encode(version=${version})\n`;
}

/** @param {Uint8Array} bytes @param {number} [most] */
export function bytesText(bytes, most = 48) {
  const some = bytes.subarray(0, most);
  const text = new TextDecoder("utf-8").decode(some);
  const shown = /[\0-\x08\x0e-\x1f\ufffd]/.test(text) ? hex(some) : JSON.stringify(text);
  return bytes.length > most ? `${shown}… ${bytes.length.toLocaleString("en")} bytes` : shown || "no bytes";
}

const TIME = /(timestamp|time)(ms)?$/i;

/** The text of a field in the tree. @param {Field} field @param {Record<string, string>} errors */
export function valueText(field, errors) {
  const { value } = field;
  if (value === null || value === undefined) {
    return value === null && field.role !== "struct" && field.role !== "array" && field.role !== "part" ? "null" : "";
  }
  if (value instanceof Uint8Array) {
    return value.length ? bytesText(value) : "no bytes";
  }
  if (value instanceof Uuid) {
    return String(value);
  }
  if (typeof value === "string") {
    return field.role === "value" ? JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}…` : value) : value;
  }
  if (/errorcode$/i.test(field.name) && errors[String(value)]) {
    return `${value} ${errors[String(value)]}`;
  }
  if (field.type === "int64" && TIME.test(field.name) && Number(value) > 1e11 && Number(value) < 1e14) {
    return `${value} (${new Date(Number(value)).toISOString().replace("T", " ").replace("Z", "")})`;
  }
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : String(value);
}
