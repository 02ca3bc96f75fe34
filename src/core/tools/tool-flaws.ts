/**
 * What is wrong with a tool's definition, in words that say what to do: the compiler shows them where it would speak of
 * types, and `defineTool` throws the same.
 */
export const toolFlaws = {
  schema:
    "cannot say its JSON Schema. Use zod 4.2 or later (zod 3 cannot), another library that implements Standard JSON Schema, or a plain { type: 'object', properties: … }",
  parameters: "call it input, not 'parameters': a zod schema, or a JSON Schema as it is",
  execute: 'add execute: (input) => …, or client: true when the caller of the run executes it',
} as const

export const toolFlags = [
  'client',
  'idempotent',
  'readOnly',
  'polling',
  'defer',
  'endsRun',
  'keepsHandle',
] as const
export const toolKeys = [
  'name',
  'description',
  'input',
  'execute',
  'timeoutMs',
  'needsApproval',
  'maxCalls',
  ...toolFlags,
] as const

/** What a definition with these keys may have under each of them: anything, or the words for what is wrong. */
export type Flawless<Key extends PropertyKey> = {
  [Each in Key]?: Each extends 'parameters'
    ? (typeof toolFlaws)['parameters']
    : Each extends 'description'
      ? Executable<Key>
      : Each extends (typeof toolKeys)[number]
        ? unknown
        : `there is no option '${Each & string}'`
}

/** Told at the description: a compiler points at something that is there. */
type Executable<Key> =
  Extract<Key, 'execute' | 'client'> extends never ? (typeof toolFlaws)['execute'] : unknown
