import type { StandardJsonSchema } from '../tools/input-schema.js'

/** The input of a sub-agent's tool, where `asTool` has no `input` of its own. */
export interface SubAgentTask {
  /** What is to be done, in words. */
  task: string
}

/** The schema of a task; written by hand, because the core's schema library makes no JSON Schema. */
export const taskSchema: StandardJsonSchema<SubAgentTask> = {
  '~standard': {
    version: 1,
    vendor: 'statewright',
    validate: (value) => {
      const { task } = value as Partial<SubAgentTask>
      if (typeof task === 'string' && task.trim() !== '') return { value: { task } }
      return { issues: [{ message: 'Expected a text that is not empty', path: ['task'] }] }
    },
    jsonSchema: {
      input: () => ({
        type: 'object',
        properties: {
          task: {
            type: 'string',
            description: 'What is to be done. The sub-agent sees nothing else of this conversation.',
          },
        },
        required: ['task'],
        additionalProperties: false,
      }),
    },
  },
}
