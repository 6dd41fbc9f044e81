"""The wordings of programs' messages, each the whole of a line; how they are met with is in `failure_messages`.

A bar parts them, and a star stands for any words. Small letters, since programs differ in capitals only.
"""

__all__ = ["WORDINGS"]

# Operating systems and shells.
_OPERATING_SYSTEMS = """
    address already in use | broken pipe | bus error | cannot allocate memory | command terminated with exit code * |
    connection reset by peer | core dumped | device or resource busy | disk quota exceeded | exit status * |
    file too large | floating point exception | host is down | host is unreachable | host unreachable |
    illegal instruction | input/output error | is a directory | name or service not known | network is down |
    no address associated with hostname | no child processes | no space left on device | no such device |
    no such file or directory | not a directory | operation not permitted | operation not supported |
    process exited with code * | process exited with status * | process finished with exit code * |
    process terminated with * | read-only file system | resource temporarily unavailable | signal: aborted* |
    signal: killed | signal: segmentation * | signal: terminated | stack level too deep |
    too many levels of symbolic links | too many open files | transport endpoint is not connected
"""
# Networks and their libraries.
_NETWORKS = """
    a connection attempt failed because the connected party did not properly respond * | all connection attempts failed
    | bad handshake | certificate has expired | certificate verify failed* |
    client network socket disconnected before secure tls connection was established | connection closed before * |
    context canceled | context deadline exceeded* | eof | error in message stream | failed to fetch | fetch failed |
    handshake failed | hostname mismatch* | i/o timeout | incomplete chunked read | load failed | network request failed
    | networkerror when attempting to fetch resource |
    no connection could be made because the target machine actively refused it* | no healthy upstream |
    no living connections | no route to host | peer closed connection without * | premature close | premature end of * |
    remote end closed connection without response | self signed certificate* | self-signed certificate* |
    server disconnected without sending a response | signal is aborted without reason | socket closed* | socket hang up
    | ssl handshake failed | stream closed* | stream timeout | temporary failure in name resolution |
    the connection was reset | the network connection was lost | the operation couldn't be completed* |
    the operation was aborted | the remote name could not be resolved* | the request was aborted* |
    the ssl connection could not be established* | the user aborted a request | this operation was aborted | timed out |
    timed out after * | timed out waiting for * | timeout exceeded* | timeout expired* | timeout of * exceeded |
    tls handshake timeout | transport is closing | unable to get local issuer certificate |
    unable to verify the first certificate | underlying connection was closed* | unexpected end of * | unexpected eof* |
    upstream prematurely closed connection* | upstream request timeout
"""
# Web servers, gateways and their checks.
_WEB = """
    bad request | checking if the site connection is secure* | checking your browser before * | content too large |
    enable javascript and cookies to continue* | failed dependency | forbidden | forbidden you don't have permission * |
    http version not supported | incorrect api key* | insufficient permissions* | insufficient storage |
    invalid access token* | invalid api key* | invalid authentication* | invalid credentials* | invalid json* |
    invalid request | invalid request body* | invalid request: * | invalid token | invalid token: * | jwt expired |
    jwt malformed | method not allowed | missing authentication token | missing bearer * | missing or invalid api * |
    missing or invalid auth* | missing or invalid credentials* | missing or invalid token* |
    network authentication required | not authenticated | not authorised | not authorized | not authorized to * |
    not implemented | payload too large | precondition failed | proxy authentication required | range not satisfiable |
    request entity too large | request header fields too large | request timeout |
    response status code does not indicate success* | signature has expired | signature verification failed |
    sorry, you have been blocked | the page you requested * | the page you were looking for * |
    the requested resource * not * | the requested url * not * | the security token included in the request is * |
    token has expired | unauthorised | unauthorized | unavailable for legal reasons | unprocessable content |
    unprocessable entity | unsupported media type | uri too long | user is not authorized* | variant also negotiates |
    verify you are human*
"""
# Languages and their libraries.
_LANGUAGES = """
    array index out of bounds* | arrayindexoutofbounds* | assertion failed* | assignment to entry in nil map |
    attempt to * a nil value* | can only concatenate * | cannot convert undefined * | cannot find module * |
    cannot find symbol* | cannot import name * | cannot pickle * | cannot read properties of * | cannot read property *
    | cannot set properties of * | cannot set property * | cannot unpack * | collection was modified* |
    could not convert string to float* | could not find or load main class * | data too large* |
    dictionary changed size during iteration | division by zero | event loop is closed |
    expected str, bytes or os.pathlike object* | expecting property name enclosed in double quotes* | expecting value: *
    | extra data: * | field required | field required [* | float division by zero | generator already executing |
    illegal state | index * out of bounds* | index * out of range* | index out of range* | index was out of range* |
    index was outside the bounds of the array | input string was not in a correct format | input validation error* |
    integer division or modulo by zero | invalid array length | invalid left-hand side in assignment |
    invalid literal for * | invalid memory address or nil pointer dereference | invalid or unexpected token |
    list index out of range | math domain error | maximum call stack size exceeded | maximum recursion depth exceeded* |
    missing * required positional argument* | missing required argument* | missing required parameter* |
    must be str, not * | no module named * | no such property* | nonetype object * | not enough values to unpack* |
    null pointer dereference | null reference | object of type * has no * | object of type * is not json serializable |
    object reference not set * | parameter * is required | pop from empty list | segmentation fault |
    segmentation fault at * | sequence contains no elements* | specified cast is not valid | string index out of range |
    string indices must be integers* | the given key * was not present in the dictionary |
    the given key was not present in the dictionary | too many values to unpack* | unable to cast object * |
    unexpected identifier* | unexpected indent* | unexpected token * | unhandled rejection* | unhandledpromiserejection*
    | unsupported operand * | unterminated string* | value cannot be null*
"""
# Databases and their drivers.
_DATABASES = """
    a network-related or instance-specific error * | access denied for user * | all shards failed |
    ambiguous column name* | attempt to write a readonly database | canceling statement due to * |
    cannot insert the value null * | cannot open database * | collection not found* | column * cannot be null |
    command denied to user * | connection pool exhausted | conversion failed when converting * |
    could not obtain connection* | could not open relation * | could not serialize access * | could not write to file *
    | current transaction is aborted* | data too long for column * | data truncated for column * |
    database disk image is malformed | database is locked | database table is locked* | deadlock detected |
    deadlock found when trying to get lock* | disk i/o error | duplicate entry * for key * |
    duplicate key value violates * | file is not a database | from keyword not found * | hikaripool* |
    host * is not allowed to connect * | incorrect syntax near * | insert or update on table * | invalid column name * |
    invalid cursor state | invalid input syntax for * | invalid object name * | invalid username/password* |
    loading redis * | lock request time out period exceeded | lock wait timeout exceeded* | login failed for user * |
    lost connection to * server * | misconf redis * | mysql server has gone away | near *: syntax error |
    no connection to the server | no pg_hba.conf entry * | no such column* | no such index* | no such table* |
    noauth authentication required | not authorized on * | null value in column * | numeric value out of range |
    oom command not allowed* | operand should contain * | out of shared memory | password authentication failed * |
    permission denied for database * | permission denied for function * | permission denied for relation * |
    permission denied for schema * | permission denied for sequence * | permission denied for table * |
    permission denied for view * | query exceeded * | query execution was interrupted* | queuepool limit * |
    readonly you can't write * | remaining connection slots * | server closed the connection unexpectedly* |
    server selection timeout* | sorry, too many clients already | ssl connection has been closed unexpectedly |
    string or binary data would be truncated* | subquery returned more than * | subquery returns more than 1 row |
    syntax error at * | syntax error near * | terminating connection due to * | the database system is in recovery mode
    | the database system is shutting down | the database system is starting up | the transaction log for database * |
    too many clients already | too many connections* | transaction (process id * | unable to open database file |
    unknown column * | unknown database * | unknown table * | wrongtype operation * |
    you have an error in your sql syntax*
"""
# Models, their providers, agents; and what chats show while nothing comes.
_MODELS = """
    agent stopped due to * | allocation failed | an error occurred (*) when calling * | answer unavailable |
    chain halted* | chat session not found | connecting... | content unavailable | conversation not found |
    could not parse llm output* | critical failure | cuda error* | data unavailable | document not found |
    empty completion | empty response | endpoint not found | failed to load model* | fatal failure | file not found |
    function not found | gpu out of memory | heap out of memory | index not found | internal error | internal error (* |
    internal error: * | internal failure * | invalid format: * | invalid or incomplete response |
    invalid response from * | loading... | loading… | malformed request | malformed response* | maximum context length *
    | message limit reached* | message too long | model * does not exist* | model * is currently loading |
    model is loading | model not found | no completion* | object not found | operation returned an invalid status code *
    | output parsing error* | output unavailable | parse error | please retry | please retry later | please try again |
    please try again later | please wait... | please wait… | processing... | processing… | prompt is too long* |
    rate exceeded | reached max iterations | reconnecting... | reconnecting… | recursion limit of * reached* |
    reload the page | request failed | request failed with status * | resource exhausted* | resource has been exhausted*
    | resource not found | response ended prematurely | response unavailable | result unavailable | retry later |
    search unavailable | server overloaded | session expired | session not found | stream ended unexpectedly |
    stream error | system error | system error (* | system error: * | task timed out * | the conversation is too long* |
    the input is too long* | the model * does not exist * | the server had an error* | the server is busy* |
    the server is overloaded* | the string did not match the expected pattern | thinking... | thinking… |
    this model's maximum context length * | token limit exceeded* | tool not found | try again | try again later |
    unexpected error | unexpected error (* | unexpected error: * | unknown error | unknown error (* | unknown error: * |
    unknown tool* | validation error | validation failed | workload evicted* | your input is too long* |
    your message is too long* | your message will exceed * | your request was rejected as a result of *
"""

WORDINGS = tuple(
    wording.strip()
    for family in (_OPERATING_SYSTEMS, _NETWORKS, _WEB, _LANGUAGES, _DATABASES, _MODELS)
    for wording in " ".join(family.split()).split("|")
)
