/**
 * The part of the Standard Schema interface (https://standardschema.dev) that tools need. Zod 4, Valibot, ArkType and
 * others implement it, so no schema library is imported here.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': StandardProps<Input, Output>
}

/** A Standard Schema that can also say what it accepts as JSON Schema (zod >= 4.2, for example). */
export interface StandardJsonSchema<Input = unknown, Output = Input> {
  readonly '~standard': StandardProps<Input, Output> & {
    readonly jsonSchema: {
      /** Throws when the schema has no JSON Schema. */
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
    }
  }
}

interface StandardProps<Input, Output> {
  readonly version: 1
  readonly vendor: string
  readonly types?: { readonly input: Input; readonly output: Output } | undefined
  readonly validate: (value: unknown) => Validation<Output> | Promise<Validation<Output>>
}

export type Validation<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] }

export interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const { '~standard': standard } = value as { '~standard'?: { validate?: unknown } }
  return typeof standard?.validate === 'function'
}
