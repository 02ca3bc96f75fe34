import { isRecord } from '../../../guards/lib/stored.js'
import { asText } from '../../core/base/values.js'
import { findRefFault } from '../../core/models/fit-tools.js'
import { isNestedDeeper } from '../../core/models/plain-json.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'

/** Characters of a schema as JSON. */
const maxSchema = 64 * 1024

/** Levels of a schema. No provider takes deeper ones. */
const maxDepth = 100

/**
 * The input schema of a listed tool. Arguments are always an object, so a schema without a type gets one. `null` for an unset
 * keyword (Go, Java) and `[]` for no properties (PHP) are left out.
 */
export function readInputSchema(listed: Json | undefined): Json | undefined {
  if (!isRecord(listed)) return listed
  const { type, properties, required, ...schema } = listed as JsonObject
  const isObject = type === undefined || [type].flat().some((name) => asText(name).toLowerCase() === 'object')
  const isEmpty = properties === null || (Array.isArray(properties) && properties.length === 0)
  return {
    ...schema,
    ...(type !== undefined && { type }),
    ...(isObject && { type: 'object' }),
    ...(properties !== undefined && { properties: isEmpty ? {} : properties }),
    ...(required !== undefined && required !== null && { required }),
  }
}

/**
 * Why no model can get a tool with this input schema; undefined when it can. Completes a sentence that begins with the schema.
 * All other schemas are adapted by `fitTools`.
 */
export function findSchemaFault(schema: unknown): string | undefined {
  if (!isRecord(schema) || schema.type !== 'object') return 'is not of type "object"'
  if (isNestedDeeper(schema, maxDepth)) return `is nested more than ${maxDepth} levels deep`
  if (JSON.stringify(schema).length > maxSchema) return `is longer than ${maxSchema} characters`
  const { properties = {}, required = [] } = schema
  if (!isRecord(properties) || !Object.values(properties).every(isSchema)) {
    return 'has properties that are not schemas'
  }
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string')) {
    return 'has a list of required properties that is no list of names'
  }
  return findRefFault(schema as JsonObject)
}

function isSchema(value: unknown): boolean {
  return typeof value === 'boolean' || isRecord(value) || (Array.isArray(value) && value.length === 0)
}
