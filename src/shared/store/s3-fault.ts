// What an S3 server, the way to it or the credentials' chain says when a call fails: which kind of fault that is (one
// place decides, for every code), whether trying again can help, and what a person reads. Always exit 3 in the end: a
// part of the farm is not usable, and whoever waits for it waits at no cost. Knows nothing of the SDK.

import { type FarmError, missingError } from '../errors.ts';

/** The facts of a call that failed. */
export interface S3Failure {
  /** As S3 calls it: `PutObject`. */
  operation: string;
  /** The server's code, the system's (`ECONNRESET`), or the SDK's name of the error. */
  code: string;
  /** Null where no answer came. */
  status: number | null;
  message: string;
  /** Where the bucket lies, if the server said so. */
  region: string | null;
}

export class S3Error extends Error {
  readonly failure: S3Failure;
  constructor(failure: S3Failure, cause?: unknown) {
    super(`${failure.operation}: ${failure.code}: ${failure.message}`, { cause });
    this.name = 'S3Error';
    this.failure = failure;
  }
}

export type S3FaultKind =
  | 'absent'
  | 'taken'
  | 'beyond'
  | 'upload_gone'
  | 'unanswered'
  | 'busy'
  | 'failing'
  | 'corrupted'
  | 'unstored'
  | 'clock'
  | 'no_bucket'
  | 'denied'
  | 'credentials'
  | 'expired'
  | 'region'
  | 'unknown_host'
  | 'certificate'
  | 'full'
  | 'refused';

const BY_CODE: Record<string, S3FaultKind> = {
  NoSuchKey: 'absent',
  NotFound: 'absent',
  PreconditionFailed: 'taken',
  InvalidRange: 'beyond',
  NoSuchUpload: 'upload_gone',
  // Two conditional puts at once: the server asks for another try.
  ConditionalRequestConflict: 'busy',
  OperationAborted: 'busy',
  SlowDown: 'busy',
  ServiceUnavailable: 'busy',
  Throttling: 'busy',
  ThrottlingException: 'busy',
  TooManyRequests: 'busy',
  TooManyRequestsException: 'busy',
  RequestLimitExceeded: 'busy',
  BandwidthLimitExceeded: 'busy',
  NotStored: 'unstored',
  NotImplemented: 'refused',
  InternalError: 'failing',
  RequestTimeout: 'unanswered',
  BadDigest: 'corrupted',
  InvalidDigest: 'corrupted',
  IncompleteBody: 'corrupted',
  XAmzContentSHA256Mismatch: 'corrupted',
  XAmzContentChecksumMismatch: 'corrupted',
  RequestTimeTooSkewed: 'clock',
  RequestExpired: 'clock',
  RequestInTheFuture: 'clock',
  NoSuchBucket: 'no_bucket',
  AccessDenied: 'denied',
  AllAccessDisabled: 'denied',
  AccountProblem: 'denied',
  InvalidAccessKeyId: 'credentials',
  SignatureDoesNotMatch: 'credentials',
  InvalidToken: 'credentials',
  InvalidClientTokenId: 'credentials',
  CredentialsProviderError: 'credentials',
  ExpiredToken: 'expired',
  ExpiredTokenException: 'expired',
  TokenRefreshRequired: 'expired',
  PermanentRedirect: 'region',
  TemporaryRedirect: 'region',
  AuthorizationHeaderMalformed: 'region',
  IllegalLocationConstraintException: 'region',
  ENOTFOUND: 'unknown_host',
  QuotaExceeded: 'full',
  InsufficientStorage: 'full',
  InsufficientCapacity: 'full',
  XMinioStorageFull: 'full',
};

const BY_STATUS: Record<number, S3FaultKind> = {
  301: 'region',
  307: 'region',
  403: 'denied',
  404: 'absent',
  408: 'unanswered',
  412: 'taken',
  416: 'beyond',
  429: 'busy',
  503: 'busy',
  507: 'full',
};

export function s3FaultKind({ code, status, message }: S3Failure): S3FaultKind {
  if (/no space left on device|disk (?:is )?full|quota exceeded/i.test(message)) return 'full';
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (status === null) {
    if (/CERT|SELF_SIGNED|SSL|TLS|EPROTO/.test(code)) return 'certificate';
    // An answer that cannot be read, or is not what its checksum says, or ends before its end.
    return /checksum|deserializ|unexpected end|aborted/i.test(message) ? 'corrupted' : 'unanswered';
  }
  // What came with a success and cannot be read was changed on the way.
  if (status < 300) return 'corrupted';
  return BY_STATUS[status] ?? (status >= 500 ? 'failing' : 'refused');
}

/** Whether the same call may well succeed a moment later. */
export function mayPass(kind: S3FaultKind): boolean {
  switch (kind) {
    case 'unanswered':
    case 'busy':
    case 'failing':
    case 'corrupted':
    case 'unstored':
    // The client learns the server's time from its answer, and signs by it.
    case 'clock':
      return true;
    case 'absent':
    case 'taken':
    case 'beyond':
    case 'upload_gone':
    case 'no_bucket':
    case 'denied':
    case 'credentials':
    case 'expired':
    case 'region':
    case 'unknown_host':
    case 'certificate':
    case 'full':
    case 'refused':
      return false;
  }
}

interface Said {
  code: string;
  what: string;
  hint: string;
}

/** The failure for people: where, what, and the next step. `where` is the store and its endpoint. */
export function s3FarmError(where: string, error: S3Error): FarmError {
  const { operation, code, status, message } = error.failure;
  const said = say(error.failure);
  const detail = `${operation}: ${code}${status === null ? '' : ` (${status})`}${message === '' || message === code ? '' : `: ${message}`}`;
  return missingError(said.code, `the store ${where} ${said.what} (${detail})`, said.hint, error);
}

function say(failure: S3Failure): Said {
  const { operation, region } = failure;
  const kind = s3FaultKind(failure);
  switch (kind) {
    case 'unanswered':
      return {
        code: 'store_unreachable',
        what: 'does not answer',
        hint: 'look at S3_ENDPOINT and at the server; a run that waits goes on by itself when it is back',
      };
    case 'busy':
      return {
        code: 'store_busy',
        what: 'asks for fewer requests, again and again',
        hint: 'fewer workers, or a store that takes more; a run that waits goes on by itself',
      };
    case 'failing':
      return {
        code: 'store_failing',
        what: 'fails, again and again',
        hint: 'look at the server: its log, its disk; a run that waits goes on by itself',
      };
    case 'corrupted':
      return {
        code: 'store_corrupts',
        what: 'sends or receives other bytes than were sent, again and again',
        hint: 'look at what lies between here and the server: a proxy, a cache, the network',
      };
    case 'unstored':
      return {
        code: 'store_lies',
        what: 'says that it has stored what it has not',
        hint: 'nothing was acknowledged; look at the server and at proxies before it',
      };
    case 'clock':
      return {
        code: 'store_clock',
        what: 'refuses requests because this machine’s clock and its own differ',
        hint: 'set both clocks right (NTP)',
      };
    case 'no_bucket':
      return {
        code: 'store_no_bucket',
        what: 'has no such bucket',
        hint: 'create the bucket, or name another with FARM_STORE or `store`',
      };
    case 'denied':
      return {
        code: 'store_denied',
        what: 'denies the right to do that',
        hint: `these credentials need s3:${actionOf(operation)} there, and s3:PutObject, s3:GetObject, s3:ListBucket, s3:DeleteObject, s3:AbortMultipartUpload in all`,
      };
    case 'credentials':
      return {
        code: 'store_credentials',
        what: 'cannot be used with these credentials',
        hint: 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role, as for any AWS tool',
      };
    case 'expired':
      return {
        code: 'store_credentials_expired',
        what: 'says that the credentials have expired',
        hint: 'renew them (AWS_SESSION_TOKEN, aws sso login), and start the command again with them',
      };
    case 'region':
      return {
        code: 'store_wrong_region',
        what: `lies in another region${region === null ? '' : `, ${region}`}`,
        hint: `set AWS_REGION${region === null ? '' : `=${region}`}, or say ?region=${region ?? '…'} in the address`,
      };
    case 'unknown_host':
      return {
        code: 'store_unreachable',
        what: 'has an endpoint that nobody knows',
        hint: 'look at S3_ENDPOINT, the region and the bucket’s name; `?style=path` where buckets have no host names',
      };
    case 'certificate':
      return {
        code: 'store_certificate',
        what: 'has a certificate that is not trusted here, or does not speak TLS',
        hint: 'http:// or https:// in S3_ENDPOINT as the server speaks; NODE_EXTRA_CA_CERTS names an authority of your own',
      };
    case 'full':
      return {
        code: 'store_full',
        what: 'is full',
        hint: 'free some space (./farm store gc), or raise the quota; the run goes on where it was',
      };
    case 'absent':
    case 'taken':
    case 'beyond':
    case 'upload_gone':
    case 'refused':
      return {
        code: 'store_refuses',
        what: 'refuses a request',
        hint: 'is it an S3 server, at the right address? ./farm doctor tries everything that is needed',
      };
  }
}

function actionOf(operation: string): string {
  switch (operation) {
    case 'HeadObject':
      return 'GetObject';
    case 'ListObjectsV2':
      return 'ListBucket';
    case 'ListMultipartUploads':
      return 'ListBucketMultipartUploads';
    case 'CreateMultipartUpload':
    case 'UploadPart':
    case 'CompleteMultipartUpload':
      return 'PutObject';
    default:
      return operation;
  }
}
