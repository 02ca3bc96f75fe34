import type {
  Elicitation,
  ElicitationField,
  ElicitationSchema,
  ElicitationValue,
} from '../../../machines/agent/run-result.js'
import { UsageError } from '../base/errors.js'
import { parseJsonOr } from '../base/json.js'
import { asObject } from '../base/values.js'

/** @throws {UsageError} `invalid_answer`, naming the field. The question stays open */
export function readElicitationAnswer({ mode, schema }: Elicitation, answer: unknown): string {
  const { action, content = {} } =
    asObject(typeof answer === 'string' ? parseJsonOr(answer, null) : answer) ?? {}
  if (action === 'decline' || action === 'cancel') return JSON.stringify({ action })
  if (action !== 'accept')
    throw invalidAnswer('action', "it must be 'accept', with the form's content, 'decline' or 'cancel'")
  const fields = asObject(content)
  if (fields === null) throw invalidAnswer('content', 'it must be an object')
  if (mode === 'url') return JSON.stringify({ action })
  checkContent(schema, fields)
  return JSON.stringify({ action, content: fields })
}

function checkContent(
  { properties, required = [] }: ElicitationSchema,
  content: Record<string, unknown>,
): void {
  const strange = Object.keys(content).find((key) => !Object.hasOwn(properties, key))
  if (strange !== undefined) throw invalidAnswer(`content.${strange}`, 'there is no such field')
  for (const [key, field] of Object.entries(properties)) {
    const value = content[key]
    const fault = value === undefined ? required.includes(key) && 'it is missing' : findFault(field, value)
    if (fault) throw invalidAnswer(`content.${key}`, fault)
  }
}

/** Why a value is invalid, or false if it is valid. */
export function findFault(field: ElicitationField, value: unknown): string | false {
  const { type, format } = field
  const isNumber = type === 'number' || type === 'integer'
  const isFit =
    type === 'array'
      ? Array.isArray(value)
      : isNumber
        ? Number.isFinite(value) && (type === 'number' || Number.isInteger(value))
        : typeof value === type
  if (!isFit) return `it must be ${type === 'array' ? 'a list' : `of type ${type}`}`
  const [verb, noun, end, size, least = 0, most = Infinity] = isNumber
    ? (['be', '', '', value as number, field.minimum ?? -Infinity, field.maximum] as const)
    : type === 'array'
      ? (['have', 'choice', '', (value as unknown[]).length, field.minItems, field.maxItems] as const)
      : ([
          'be',
          'character',
          ' long',
          Array.from(String(value)).length,
          field.minLength,
          field.maxLength,
        ] as const)
  const formatLimit = (limit: number) =>
    noun === '' ? String(limit) : `${limit} ${noun}${limit === 1 ? '' : 's'}${end}`
  if (size < least) return `it must ${verb} at least ${formatLimit(least)}`
  if (size > most) return `it must ${verb} at most ${formatLimit(most)}`
  const choices = listChoices(field)?.map((choice) => choice.const)
  const chosen = value as ElicitationValue
  if (choices && ![chosen].flat().every((one) => choices.includes(one as string)))
    return `it must be one of ${choices.join(', ')}`
  return format !== undefined && !formats[format](value as string) && `it must have the format ${format}`
}

const formats: Record<NonNullable<ElicitationField['format']>, (text: string) => boolean> = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => URL.canParse(text),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/i.test(text) && !Number.isNaN(Date.parse(text)),
}

function invalidAnswer(field: string, why: string): UsageError {
  const message = `The answer is invalid: ${field}: ${why}. The question stays open.`
  return new UsageError('invalid_answer', message, field)
}

export function listChoices({
  enum: values,
  enumNames,
  oneOf,
  items,
}: ElicitationField): { const: string; title: string }[] | undefined {
  const titled = oneOf ?? items?.anyOf
  if (titled) return titled
  return (values ?? items?.enum)?.map((value, i) => ({ const: value, title: enumNames?.[i] ?? value }))
}
