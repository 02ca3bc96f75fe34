import * as fc from 'fast-check'
import type { RefusedContent } from '../../../machines/agent/model-response.js'
import { toBodyFailure, toModelFailure } from '../../../src/core/models/to-model-failure.js'

const refusedBy = (status: number, error: unknown): RefusedContent | undefined =>
  toModelFailure({ status, error }).refused

const pictures: [status: number, error: object][] = [
  [400, { message: 'Invalid image data: the image/png payload could not be decoded.' }],
  [400, { message: 'Could not process image', type: 'invalid_request_error' }],
  [
    400,
    {
      message:
        'messages.2.content.0.image.source.base64.data: Image does not match the provided media type image/png',
    },
  ],
  [
    400,
    {
      message:
        'messages.8.content.0.tool_result.content.0.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image',
    },
  ],
  [
    400,
    {
      message:
        "messages.8.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png'",
    },
  ],
  [
    400,
    { message: 'messages.0.content.12.image: image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes' },
  ],
  [400, { message: 'At least one of the image dimensions exceed max allowed size: 8000 pixels' }],
  [400, { message: 'You uploaded an unsupported image.', code: 'invalid_image_format', param: null }],
  [400, { message: 'Error while downloading https://a.test/b.', code: 'invalid_image_url' }],
  [400, { message: 'Unable to process input image. Please retry or report.', status: 'INVALID_ARGUMENT' }],
  [400, { message: 'Provided image is not valid.', status: 'INVALID_ARGUMENT', code: 400 }],
  [422, { message: 'Cannot decode or download image' }],
  [400, { message: 'Invalid value.', param: 'messages[1].content[0].image_url' }],
  [
    400,
    {
      message: 'Your input image may contain content that is not allowed by our safety system.',
      code: 'image_content_policy_violation',
    },
  ],
]

test.each(pictures)('%i %j: a picture', (status, error) => {
  expect(refusedBy(status, error)).toEqual({ what: 'media', kinds: ['image'] })
})

const noPictures: [status: number, error: object][] = [
  [
    400,
    {
      message: 'Invalid content type. image_url is only supported by certain models.',
      param: 'messages.[0].content.[1].type',
    },
  ],
  [400, { message: 'this model does not support image input' }],
  [400, { message: 'Model does not support images. Please use a model that does.' }],
  [404, { message: 'No endpoints found that support image input', code: 404 }],
  [400, { message: 'Image input is not enabled for this model' }],
  [400, { message: 'At most 0 image(s) may be provided in one prompt.' }],
  [400, { message: 'qwen3-coder is not a multimodal model' }],
  [
    400,
    {
      message:
        'Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text`',
    },
  ],
  [500, { message: 'this model is missing data required for image input' }],
  [
    500,
    {
      message:
        'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
      type: 'server_error',
    },
  ],
]

test.each(noPictures)('%i %j: all pictures', (status, error) => {
  expect(toModelFailure({ status, error })).toMatchObject({
    kind: 'fatal',
    refused: { what: 'media', kinds: ['image'], never: true },
  })
})

test('some text models refuse content that is a list', () => {
  const error = {
    message:
      "'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : value must be a string)]",
  }
  expect(refusedBy(400, error)).toEqual({ what: 'media', never: true })
})

const files: [error: object][] = [
  [
    {
      message:
        "Invalid file data: 'file_data'. Expected a base64-encoded data URL with an application/pdf MIME type, but got unsupported MIME type 'text/plain'.",
    },
  ],
  [{ message: 'The PDF specified was not valid.' }],
  [{ message: 'A maximum of 100 PDF pages may be provided.' }],
  [{ message: 'The PDF specified is password protected.' }],
  [{ message: 'The document has no pages.', status: 'INVALID_ARGUMENT' }],
  [{ message: 'Invalid value', param: 'input[2].content[1].file_data' }],
  [{ message: 'file content is not supported by this model' }],
]

test.each(files)('%j: a file', (error) => {
  expect(refusedBy(400, error)).toMatchObject({ what: 'media', kinds: ['file'] })
})

test('audio, and types without a known kind', () => {
  expect(refusedBy(404, { message: 'No endpoints found that support input audio' })).toMatchObject({
    kinds: ['audio'],
    never: true,
  })
  expect(refusedBy(400, { message: 'Unsupported MIME type: text/csv' })).toEqual({ what: 'media' })
})

const reasoning: [status: number, error: object][] = [
  [
    400,
    {
      message:
        'The encrypted content Asec... could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
      code: 'invalid_encrypted_content',
    },
  ],
  [400, { message: 'Invalid value.', param: 'input[3].encrypted_content' }],
  [
    400,
    {
      message: 'messages.1.content.0: Invalid `signature` in `thinking` block',
      type: 'invalid_request_error',
    },
  ],
  [
    400,
    {
      message:
        '{"type":"error","error":{"message":"messages.1.content.0: Invalid `signature` in `thinking`\\n block"}}',
      code: 400,
      status: 'INVALID_ARGUMENT',
    },
  ],
  [
    400,
    {
      message: 'Provider returned error',
      metadata: { raw: '{"message":"messages.3.content.0: Invalid `signature` in `thinking` block"}' },
    },
  ],
  [
    400,
    {
      message: '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.',
    },
  ],
  [
    400,
    {
      message: "Item 'rs_0c3876' of type 'reasoning' was provided without its required following item.",
      param: 'input',
    },
  ],
  [
    400,
    {
      message:
        "Item 'fc_0c3876' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
    },
  ],
  [
    404,
    { message: "Item with id 'rs_123' not found. Items are not persisted when `store` is set to false." },
  ],
  [400, { message: 'Corrupted thought signature.', status: 'INVALID_ARGUMENT' }],
  [400, { message: 'Thought signature is not valid.', status: 'INVALID_ARGUMENT' }],
]

test.each(reasoning)('%i %j: stored reasoning', (status, error) => {
  expect(refusedBy(status, error)).toEqual({ what: 'reasoning' })
})

const noReasoning: [status: number, error: unknown][] = [
  [
    400,
    {
      message:
        "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
    },
  ],
  [
    422,
    {
      message: [
        {
          type: 'extra_forbidden',
          loc: ['body', 'messages', 2, 'assistant', 'reasoning_content'],
          msg: 'Extra inputs are not permitted',
        },
      ],
    },
  ],
  [400, { message: 'Please remove the reasoning_content from your message.' }],
]

test.each(noReasoning)('%i %j: all stored reasoning', (status, error) => {
  expect(refusedBy(status, error)).toEqual({ what: 'reasoning', never: true })
})

const flagged: [status: number, error: unknown][] = [
  [
    400,
    {
      message:
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry. To learn more about our content filtering policies please read our documentation",
      code: 'content_filter',
      param: 'prompt',
    },
  ],
  [
    400,
    {
      message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
      code: 'invalid_prompt',
    },
  ],
  [
    400,
    {
      message: "Invalid prompt: we've limited access to this content for safety reasons.",
      code: 'invalid_prompt',
    },
  ],
  [400, { message: 'Content Exists Risk', code: 'invalid_request_error' }],
  [
    400,
    {
      message:
        '<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content.',
      code: 'data_inspection_failed',
    },
  ],
  [
    403,
    {
      message: 'Your chosen model requires moderation and your input was flagged for "violence".',
      code: 403,
    },
  ],
  [403, 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO'],
  [400, { message: 'The request was rejected because it was considered high risk', type: 'content_filter' }],
  [400, { message: '系统检测到输入或生成内容可能包含不安全或敏感内容', code: '1301' }],
]

test.each(flagged)('%i %j: messages', (status, error) => {
  expect(refusedBy(status, error)).toEqual({ what: 'messages' })
})

test('a stream that breaks off with such an error is recognized, too', () => {
  const error = {
    code: 'invalid_prompt',
    message: 'Your prompt was flagged as potentially violating our usage policy.',
  }
  expect(toBodyFailure({ error }).refused).toEqual({ what: 'messages' })
})

/** Requests with unrelated errors, which removing content would not fix. */
const others: [status: number, error: unknown][] = [
  [401, { message: 'Incorrect API key provided.', code: 'invalid_api_key' }],
  [400, { message: 'Incorrect API key provided. You can obtain an API key from https://console.x.ai.' }],
  [403, { message: 'You are not allowed to use this model.' }],
  [
    404,
    {
      message: 'The model `gpt-4-vision-preview` does not exist or you do not have access to it.',
      code: 'model_not_found',
    },
  ],
  [404, { message: 'The API deployment for this resource does not exist.', code: 'DeploymentNotFound' }],
  [400, { message: 'The model gpt-image-1 is not supported in the chat endpoint.' }],
  [
    400,
    {
      message: "Invalid 'temperature': decimal below minimum value.",
      code: 'decimal_below_min_value',
      param: 'temperature',
    },
  ],
  [
    400,
    {
      message: "Invalid schema for function 'upload-image': schema must be of type object.",
      param: 'tools[0].function.parameters',
    },
  ],
  [400, { message: 'tools.3.custom.input_schema: JSON schema is invalid for the file tool.' }],
  [
    400,
    {
      message: "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
      param: 'reasoning.effort',
      code: 'unsupported_parameter',
    },
  ],
  [400, { message: '`max_tokens` must be greater than `thinking.budget_tokens`.' }],
  [400, { message: 'The reasoning_content in the thinking mode must be passed back to the API.' }],
  [400, { message: 'Function call is missing a thought_signature in functionCall parts.' }],
  [400, { message: "Missing required parameter: 'messages'.", param: 'messages' }],
  [
    400,
    { message: 'messages: tool_use ids were found without tool_result blocks immediately after: call_1.' },
  ],
  [
    400,
    {
      message:
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    },
  ],
  [400, { message: 'prompt is too long: 210000 tokens > 200000 maximum' }],
  [413, { message: 'Request exceeds the maximum size, with its images' }],
  [429, { message: 'Too many images this minute: not allowed.', code: 'rate_limit_exceeded' }],
  [402, { message: 'Your credit balance is too low to send a file.' }],
  [500, { message: 'The server could not process the image.' }],
  [503, { message: 'Overloaded: image input is slow.' }],
  [400, {}],
]

test.each(others)('%i %j: none of the content', (status, error) => {
  expect(refusedBy(status, error)).toBeUndefined()
})

test('never throws, and never matches a transient failure', () => {
  const word = fc.constantFrom(
    'image',
    'file',
    'signature',
    'thinking',
    'flagged',
    'invalid',
    'not',
    'supported',
    'model',
    '`',
    'messages[0]',
  )
  const words = fc.oneof(
    fc.string(),
    fc.array(word).map((list) => list.join(' ')),
  )
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), words, words, words, (status, message, code, param) => {
      const { kind, refused } = toModelFailure({ status, error: { message, code, param } })
      expect(refused === undefined || kind === 'fatal').toBe(true)
    }),
  )
})
