// The schema of a tool's input, for libraries that accept zod.
import { z } from 'zod'

const types = { string: z.string() }

export const toSchema = (fields) =>
  z.object(Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, types[type]])))
