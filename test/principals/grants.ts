import type { Who } from './surface.js'

/** Whose sessions a request of each may see. The reader sees those of the owner, and may not continue them. */
export const grants: Record<Who, object | null> = {
  owner: { prefix: 'ann', context: 'owner', mayContinue: true },
  reader: { prefix: 'ann', context: 'reader' },
  stranger: { prefix: 'bob', context: 'stranger' },
  nobody: null,
  operator: null,
}
