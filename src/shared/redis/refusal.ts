// Why a Redis cannot be used, as people are told: what happened, and what to do next. One place, so that a wrong password
// is called that whether a server, a Sentinel or a node of a cluster refuses it.

import { codeOf, FarmError, messageOf, missingError } from '../errors.ts';

const LOGIN = /NOAUTH|WRONGPASS|invalid password|without any password configured/i;
const RIGHTS = /NOPERM|no permissions/i;
const TLS_CODE = /^ERR_SSL|^ERR_TLS|^ERR_OSSL|CERT|SELF_SIGNED|UNABLE_TO_|CRL_|INVALID_CA|INVALID_PURPOSE/;
const TLS_TEXT = /\bSSL routines\b|self.signed certificate|certificate|wrong version number|tls_/i;

/** `where`: the address, for people. */
export function redisRefusal(where: string, error: unknown): FarmError {
  if (error instanceof FarmError) return error;
  const why = messageOf(error);
  if (LOGIN.test(why))
    return missingError(
      'redis_auth',
      `Redis at ${where} refuses the password`,
      'put the right name and password into REDIS_URL',
      error,
    );
  if (RIGHTS.test(why))
    return missingError(
      'redis_rights',
      `Redis at ${where} does not give its user the rights that are needed: ${why}`,
      'infra/redis-user.conf has the rights that the farm’s user needs',
      error,
    );
  if (isTlsFault(error, why)) return tlsRefusal(where, why, error);
  // Before version 6 there was no HELLO.
  if (/unknown command|NOPROTO/i.test(why)) return tooOld(where, 'older than 6');
  return missingError(
    'redis_unreachable',
    `Redis at ${where} does not answer: ${why}`,
    /closed|ECONNRESET/i.test(why)
      ? 'if it speaks TLS only, the address begins with rediss'
      : 'start it, or unset REDIS_URL to use the embedded one',
    error,
  );
}

export function tlsRefusal(where: string, why: string, cause?: unknown): FarmError {
  return missingError(
    'redis_tls',
    `TLS with Redis at ${where} did not come about: ${why}`,
    'rediss://…?ca=FILE names whom to believe, cert and key who we are, servername the name in its certificate; a server without TLS is redis://',
    cause,
  );
}

function isTlsFault(error: unknown, why: string): boolean {
  return TLS_CODE.test(codeOf(error)) || TLS_TEXT.test(why);
}

export function tooOld(where: string, version: string): FarmError {
  return missingError(
    'redis_version',
    `Redis at ${where} is version ${version}; 7.0 or newer is needed`,
    'upgrade it, or unset REDIS_URL',
  );
}
