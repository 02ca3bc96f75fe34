import { z } from 'zod'

/** What the methods of the extension take. The values of `inputResponses` are looked at question by question. */
export const taskParams = {
  get: z.object({ taskId: z.string() }),
  update: z.object({ taskId: z.string(), inputResponses: z.record(z.string(), z.unknown()).optional() }),
}
