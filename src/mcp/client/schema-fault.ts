import { isRecord } from '../../../guards/lib/stored.js'
import { decodePercent } from '../../core/base/decode-percent.js'

/** Characters of a schema as JSON. */
const maxSchema = 64 * 1024

/** Levels of a schema; what is deeper is an attack, or nothing that a provider would take. */
const maxDepth = 100

/**
 * Why a model cannot be shown this input schema; undefined when it can. One bad schema would make the provider refuse
 * every request of the agent. Completes a sentence that begins with the schema.
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
  return findRefFault(schema)
}

/** Looks no deeper than `levels`, for a server decides how deep its schemas are. */
function isNestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isNestedDeeper(inner, levels - 1))
}

/** Every `$ref` has to lead to something inside. */
function findRefFault(schema: Record<string, unknown>): string | undefined {
  const queue: unknown[] = [schema]
  for (const value of queue) {
    if (typeof value !== 'object' || value === null) continue
    for (const key of ['$ref', '$dynamicRef']) {
      const ref = (value as Record<string, unknown>)[key]
      if (typeof ref !== 'string') continue
      if (!ref.startsWith('#')) return `refers to something outside itself ('${ref.slice(0, 100)}')`
      if (!isRefResolvable(schema, ref)) return `refers to '${ref.slice(0, 100)}', which it does not have`
    }
    queue.push(...Object.values(value))
  }
  return undefined
}

/** A JSON pointer is followed; an anchor (`#name`) is believed. */
function isRefResolvable(schema: Record<string, unknown>, ref: string): boolean {
  if (ref === '#' || !ref.startsWith('#/')) return true
  let value: unknown = schema
  for (const part of ref.slice(2).split('/')) {
    const key = decodePercent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return false
    value = (value as Record<string, unknown>)[key]
  }
  return true
}

function isSchema(value: unknown): boolean {
  return typeof value === 'boolean' || isRecord(value)
}
