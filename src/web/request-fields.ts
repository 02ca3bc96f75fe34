import { isObject } from '../core/base/values.js'
import { invalidInputError } from './error-response.js'

/** Reads a value from a request. Errors name its location. @throws {UsageError} `invalid_input` */
type Field<Value> = (value: unknown, at: string) => Value

/** The type of a field's values, so that requests declare their fields only once. */
export type ValueOf<Read> = Read extends Field<infer Value> ? Value : never

export function field<Value>(is: (value: unknown) => value is Value, phrase: string): Field<Value> {
  return (value, at) => {
    if (is(value)) return value
    throw invalidInputError(`${at} must be ${phrase}.`, at)
  }
}

const isString = (value: unknown): value is string => typeof value === 'string'

export const anything: Field<unknown> = (value) => value
export const text = field(isString, 'a string')
export const flag = field((value) => typeof value === 'boolean', 'true or false')
export const shortText = field(
  (value): value is string => isString(value) && value !== '' && value.length <= 200,
  'a string of 1 to 200 characters',
)

export const branchNumber: Field<number> = field(
  (value): value is number => Number.isSafeInteger(value) && Number(value) > 0,
  'a branch number, from 1',
)

export const oneOf = <const Value extends string>(...values: Value[]): Field<Value> =>
  field(
    (value): value is Value => (values as unknown[]).includes(value),
    values.map((value) => `'${value}'`).join(' or '),
  )

export const optional =
  <Value>(read: Field<Value>): Field<Value | undefined> =>
  (value, at) =>
    value === undefined ? undefined : read(value, at)

export const lenientText: Field<string | undefined> = (value) => (isString(value) ? value : undefined)

const listRule = field((value): value is unknown[] => Array.isArray(value), 'a list')
export const object = field(isObject, 'an object')

export const list =
  <Value>(read: Field<Value>): Field<Value[]> =>
  (value, at) =>
    listRule(value, at).map((item, i) => read(item, `${at}[${i}]`))

type Shape = Record<string, Field<unknown>>

/** Reads the named fields of an object, and ignores all others. */
export const fields =
  <Fields extends Shape>(shape: Fields): Field<{ [Key in keyof Fields]: ValueOf<Fields[Key]> }> =>
  (value, at) => {
    const given = object(value, at)
    const entries = Object.entries(shape).map(([key, read]) => [
      key,
      read(given[key], at === '' ? key : `${at}.${key}`),
    ])
    return Object.fromEntries(entries) as { [Key in keyof Fields]: ValueOf<Fields[Key]> }
  }

const refuse =
  (name: string, why: string) =>
  (value: unknown, at: string): void => {
    if (!isObject(value) || value[name] === undefined) return
    const key = at === '' ? name : `${at}.${name}`
    throw invalidInputError(`${key} is not allowed. ${why}`, key)
  }

/**
 * Rejects a request that names its sender, because only `authorize` may do that. @throws {UsageError} `invalid_input`
 */
export const refuseSender = refuse('by', "The server's authorize function provides it.")

/** Rejects an answer that would approve later calls. @throws {UsageError} `invalid_input` */
export const refuseGrant = refuse('grant', 'A page can approve only the call that it shows.')
