import type {
  Elicitation,
  ElicitationField,
  ElicitationSchema,
  ElicitationValue,
} from '../../../../machines/agent/run-result.js'
import { readProperty } from '../../../core/base/json.js'
import { hasUserInfo, isHttpUrl } from '../../../core/models/openai/openai-options.js'
import { cutText, quoteText, stripInvisible } from '../plain-text.js'
import { isRecord } from '../../../../guards/lib/stored.js'
import { findFault } from '../../../core/sessions/elicitation-answer.js'

const maxMessage = 4_000
const maxUrl = 2_000

/**
 * Reads the parameters of `elicitation/create`, which are untrusted.
 * @throws {ElicitationFault}
 */
export function readElicitation(params: unknown, server: string): Elicitation {
  const { mode = 'form', message, url, requestedSchema } = asObject(params)
  if (typeof message !== 'string' || message.trim() === '')
    throw new ElicitationFault('without saying what it wants')
  const head = { server, message: cutText(stripInvisible(message).trim(), maxMessage) }
  if (mode === 'url') return { ...head, mode, url: readUrl(url) }
  if (mode === 'form') return { ...head, mode, schema: readForm(requestedSchema) }
  throw new ElicitationFault(`in the mode ${quoteText(String(mode))}, which does not exist`)
}

function readUrl(url: unknown): string {
  if (String(url).length > maxUrl || !isHttpUrl(url))
    throw new ElicitationFault(
      `to open ${quoteText(String(url).slice(0, 200))}, which is not an http(s) address`,
    )
  if (hasUserInfo(url))
    throw new ElicitationFault('to open an address with a user name in it, which hides the real address')
  return new URL(url).href
}

function asObject(value: unknown): Record<string, unknown> {
  return Object.fromEntries(
    ['mode', 'message', 'url', 'requestedSchema'].map((key) => [key, readProperty(value, key)]),
  )
}

/** A request that cannot be shown to a person. The message completes 'The server asks …'. */
export class ElicitationFault extends Error {}

const maxFields = 50
const maxChoices = 200
const maxText = 1_000

/**
 * Reads the form of a server's schema, which is a flat object of strings, numbers, booleans and choices. Other keywords
 * are dropped, because the server checks them.
 * @throws {ElicitationFault} for an unsupported field
 */
export function readForm(given: unknown): ElicitationSchema {
  const properties = readProperty(given, 'properties')
  if (readProperty(given, 'type') !== 'object' || !isRecord(properties))
    throw new ElicitationFault('for something other than an object of fields')
  const entries = Object.entries(properties)
  if (entries.length > maxFields) throw new ElicitationFault(`for more than ${maxFields} fields`)
  const fields = entries.map(([key, field]) => [readKey(key), readField(key, field)] as const)
  const required = readProperty(given, 'required')
  const wanted = Array.isArray(required)
    ? [...new Set(required)].filter((key) => Object.hasOwn(properties, String(key)))
    : []
  return {
    type: 'object',
    properties: Object.fromEntries(fields),
    ...(wanted.length > 0 && { required: wanted as string[] }),
  }
}

function readKey(key: string): string {
  if (key.length > 200 || key === '__proto__' || key !== stripInvisible(key))
    throw new ElicitationFault(`for a field ${quoteText(key.slice(0, 100))}, which no form can have`)
  return key
}

const types: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'array']
const formats: readonly unknown[] = ['email', 'uri', 'date', 'date-time']
const bounds = ['minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'] as const

function readField(key: string, given: unknown): ElicitationField {
  const refuse = (what: string) =>
    new ElicitationFault(`for the field ${quoteText(key.slice(0, 100))}, which ${what}`)
  const read = (name: string): unknown => readProperty(given, name)
  const type = read('type')
  if (!types.includes(type)) throw refuse('is not a string, number, boolean or choice')
  const field: ElicitationField = { type: type as ElicitationField['type'] }
  for (const name of ['title', 'description'] as const) {
    const text = read(name)
    if (typeof text === 'string' && text.trim() !== '') field[name] = readText(text)
  }
  for (const name of bounds) {
    const bound = read(name)
    if (typeof bound === 'number' && Number.isFinite(bound)) field[name] = bound
  }
  if (formats.includes(read('format')))
    field.format = read('format') as NonNullable<ElicitationField['format']>
  if (type === 'string') Object.assign(field, readChoices(given, refuse))
  if (type === 'array') {
    const { oneOf, enum: values } = readChoices(read('items'), refuse, 'anyOf')
    if (!oneOf && !values) throw refuse('is a list without choices')
    field.items = { type: 'string', ...(values && { enum: values }), ...(oneOf && { anyOf: oneOf }) }
  }
  const usual = read('default')
  if (usual !== undefined && findFault(field, usual) === false) field.default = usual as ElicitationValue
  return field
}

function readChoices(
  given: unknown,
  refuse: (what: string) => Error,
  named: 'oneOf' | 'anyOf' = 'oneOf',
): Pick<ElicitationField, 'enum' | 'enumNames' | 'oneOf'> {
  const [values, titled, names] = ['enum', named, 'enumNames'].map((key) => readProperty(given, key))
  const list = titled ?? values
  if (list === undefined) return {}
  if (!Array.isArray(list) || list.length === 0 || list.length > maxChoices)
    throw refuse(`must have 1 to ${maxChoices} choices`)
  if (list === titled) {
    const oneOf = list.map((one) => ({
      const: readProperty(one, 'const'),
      title: readProperty(one, 'title'),
    }))
    if (!oneOf.every((one) => isShort(one.const))) throw refuse('has choices that are not strings')
    return {
      oneOf: oneOf.map(({ const: value, title }) => ({
        const: value as string,
        title: typeof title === 'string' ? readText(title) : (value as string),
      })),
    }
  }
  if (!list.every(isShort)) throw refuse('has choices that are not strings')
  const hasNames = Array.isArray(names) && names.length === list.length && names.every(isShort)
  return { enum: list as string[], ...(hasNames && { enumNames: (names as string[]).map(readText) }) }
}

const isShort = (value: unknown): boolean => typeof value === 'string' && value.length <= maxText
const readText = (text: string): string => cutText(stripInvisible(text).trim(), maxText)
