import * as z from 'zod/mini'

/** The keys that the schema knows inside the object at this path. */
export function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const there = path.reduce<z.core.$ZodType[]>(
    (schemas, key) =>
      schemas
        .flatMap(children)
        .filter(([name]) => name === key || name === anyKey)
        .map(([, inner]) => inner),
    [schema],
  )
  return names(there.flatMap(children))
}

/** The dotted path of every key that the schema knows, parents first. */
export function keyPaths(schema: z.core.$ZodType): string[] {
  return children(schema).flatMap(([name, inner]) =>
    name === anyKey ? [] : [name, ...keyPaths(inner).map((path) => `${name}.${path}`)],
  )
}

/** Stands for the keys of an object whose keys the user chooses. */
const anyKey = '*'

function names(entries: readonly [string, z.core.$ZodType][]): string[] {
  return entries.map(([name]) => name).filter((name) => name !== anyKey)
}

function children(schema: z.core.$ZodType): [string, z.core.$ZodType][] {
  if (schema instanceof z.ZodMiniOptional || schema instanceof z.ZodMiniNullable) {
    return children(schema.def.innerType)
  }
  if (schema instanceof z.ZodMiniPipe) return [...children(schema.def.in), ...children(schema.def.out)]
  if (schema instanceof z.ZodMiniUnion) return schema.def.options.flatMap(children)
  if (schema instanceof z.ZodMiniRecord) return [[anyKey, schema.def.valueType]]
  return schema instanceof z.ZodMiniObject ? Object.entries<z.core.$ZodType>(schema.shape) : []
}
